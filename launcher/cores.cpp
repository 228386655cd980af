#include "launcher/cores.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "core/base/limits.h"

namespace fathom::launcher {
namespace {

std::string bytes_of(const std::vector<int>& cores) {
  return {reinterpret_cast<const char*>(cores.data()), cores.size() * sizeof(int)};
}

std::vector<int> cores_in(const std::string& bytes) {
  std::vector<int> cores(bytes.size() / sizeof(int));
  std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<char*>(cores.data()));
  return cores;
}

}  // namespace

int share_of_cores(const std::vector<std::vector<int>>& masks, int rank,
                   std::optional<double> quota) {
  std::map<int, int> users;
  for (const std::vector<int>& mask : masks)
    for (const int core : mask) ++users[core];
  double share = 0;
  for (const int core : masks[size_t(rank)]) share += 1.0 / users[core];
  if (quota) share = std::min(share, std::ceil(*quota) / double(masks.size()));
  constexpr double kRounding = 1e-6;  // three thirds are one core
  return std::max(1, int(share + kRounding));
}

int cores_of_rank(dist::Communicator& node) {
  std::vector<std::vector<int>> masks;
  for (const std::string& mask : node.all_gather(bytes_of(allowed_cores())))
    masks.push_back(cores_in(mask));
  return share_of_cores(masks, node.rank(), cpu_quota());
}

int threads_per_rank(const Config& config, int cores) {
  if (config.train.device == DeviceChoice::kReference) return 1;
  return config.train.threads > 0 ? config.train.threads : cores;
}

}  // namespace fathom::launcher
