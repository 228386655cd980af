#include "launcher/cores.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "core/base/thread_pool.h"

namespace fathom::launcher {
namespace {

// Ranks on this machine, as the launcher says.
int local_ranks() {
  for (const char* name :
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE", "MPI_LOCALNRANKS"}) {
    const char* text = std::getenv(name);
    int count = 0;
    if (text && std::from_chars(text, text + std::strlen(text), count).ec == std::errc() &&
        count > 0)
      return count;
  }
  return 1;
}

// A rank that is bound has its cores for itself; unbound ones share what there is.
int cores_of_rank() {
  const int allowed = available_cores();
  const bool is_bound = allowed < int(sysconf(_SC_NPROCESSORS_ONLN));
  return is_bound ? allowed : std::max(1, allowed / local_ranks());
}

}  // namespace

int threads_per_rank(const Config& config) {
  if (config.train.device == DeviceChoice::kReference) return 1;
  return config.train.threads > 0 ? config.train.threads : cores_of_rank();
}

bool has_spare_core(int threads) { return cores_of_rank() > threads; }

}  // namespace fathom::launcher
