#include "launcher/cores.h"

#include <algorithm>

#include <unistd.h>

#include "core/base/system.h"
#include "core/base/thread_pool.h"

namespace fathom::launcher {
namespace {

// A rank that is bound has its cores for itself; unbound ones share what there is.
int cores_of_rank() {
  const int allowed = available_cores();
  const bool is_bound = allowed < int(sysconf(_SC_NPROCESSORS_ONLN));
  return is_bound ? allowed : int(std::max<int64_t>(1, allowed / local_processes()));
}

}  // namespace

int threads_per_rank(const Config& config) {
  if (config.train.device == DeviceChoice::kReference) return 1;
  return config.train.threads > 0 ? config.train.threads : cores_of_rank();
}

bool has_spare_core(int threads) { return cores_of_rank() > threads; }

}  // namespace fathom::launcher
