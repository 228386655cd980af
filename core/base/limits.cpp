#include "core/base/limits.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

namespace fathom {
namespace {

namespace fs = std::filesystem;

// Empty for a file that cannot be read: then it limits nothing.
std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// None for "max", and for what is no number.
std::optional<int64_t> number_in(std::string_view word) {
  int64_t value = 0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || rest != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> first_number(const fs::path& path) {
  const std::vector<std::string> words = words_of(text_of(path));
  return words.empty() ? std::nullopt : number_in(words.front());
}

// Bytes in the line "KEY:  123 kB".
std::optional<int64_t> kibibytes(const fs::path& path, const std::string& key) {
  const std::vector<std::string> words = words_of(text_of(path));
  const auto found = std::ranges::find(words, key + ":");
  if (words.end() - found < 2) return std::nullopt;
  const std::optional<int64_t> value = number_in(*(found + 1));
  return value ? std::optional(*value << 10) : std::nullopt;
}

bool has_word(const std::string& list, const std::string& word) {
  std::istringstream in(list);
  for (std::string item; std::getline(in, item, ',');)
    if (item == word) return true;
  return false;
}

struct Mount {
  fs::path root, point;  // which folder of the hierarchy is seen, and where
  bool is_unified = false;
};

// Of the hierarchy that controls `controller`: version 1 where it is mounted, else 2.
std::optional<Mount> mount_of(const fs::path& root, const std::string& controller) {
  std::istringstream lines(text_of(root / "proc/self/mountinfo"));
  std::optional<Mount> unified;
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = words_of(line);
    const auto dash = std::ranges::find(words, "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    const Mount mount = {.root = words[3], .point = words[4], .is_unified = dash[1] == "cgroup2"};
    if (dash[1] == "cgroup" && has_word(dash[3], controller)) return mount;
    if (mount.is_unified) unified = mount;
  }
  return unified;
}

// Where /proc says that this process is.
std::optional<fs::path> path_in(const fs::path& root, const std::string& controller,
                                bool is_unified) {
  std::istringstream lines(text_of(root / "proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (is_unified ? controllers.empty() : has_word(controllers, controller))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

struct Groups {
  std::vector<fs::path> folders = {};  // the process's own and those above it
  bool is_unified = false;
};

Groups groups_of(const fs::path& root, const std::string& controller) {
  const std::optional<Mount> mount = mount_of(root, controller);
  if (!mount) return {};
  Groups groups = {.is_unified = mount->is_unified};
  const fs::path top = root / mount->point.relative_path();
  groups.folders.push_back(top);
  const std::optional<fs::path> path = path_in(root, controller, mount->is_unified);
  if (!path) return groups;
  // A container may see only its own part of the hierarchy, or be told a path outside of it.
  const fs::path below = path->lexically_relative(mount->root);
  fs::path folder = top;
  for (const fs::path& name : below) {
    if (name == "..") return {.folders = {top}, .is_unified = groups.is_unified};
    if (name == "." || name.empty()) continue;
    groups.folders.push_back(folder /= name);
  }
  return groups;
}

std::optional<double> quota_of(const fs::path& group, bool is_unified) {
  std::optional<int64_t> quota, period;
  if (is_unified) {
    const std::vector<std::string> words = words_of(text_of(group / "cpu.max"));
    if (words.size() < 2) return std::nullopt;
    quota = number_in(words[0]);
    period = number_in(words[1]);
  } else {
    quota = first_number(group / "cpu.cfs_quota_us");
    period = first_number(group / "cpu.cfs_period_us");
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return double(*quota) / double(*period);
}

void bound(MemoryBound& least, std::optional<int64_t> bytes, const char* remedy) {
  if (bytes && *bytes < least.bytes) least = {.bytes = *bytes, .remedy = remedy};
}

// Stacks, histories, checkpoints on their way: libraries crash where they get no memory for them.
constexpr int64_t kForTheRest = 128 << 20;

std::optional<int64_t> half_of_what_is_left(std::optional<int64_t> limit,
                                            std::optional<int64_t> used) {
  if (!limit) return std::nullopt;
  return std::max<int64_t>(0, *limit - used.value_or(0) - kForTheRest) / 2;
}

std::optional<int64_t> shell_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return int64_t(std::min<rlim_t>(limit.rlim_cur, INT64_MAX));
}

}  // namespace

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) cores.push_back(core);
  if (cores.empty()) cores.push_back(0);
  return cores;
}

std::optional<double> cpu_quota(const fs::path& root) {
  const Groups groups = groups_of(root, "cpu");
  std::optional<double> least;
  for (const fs::path& group : groups.folders)
    if (const std::optional<double> quota = quota_of(group, groups.is_unified))
      least = std::min(*quota, least.value_or(*quota));
  return least;
}

int available_cores(const fs::path& root) {
  const double cores = double(allowed_cores().size());
  return std::max(1, int(std::ceil(std::min(cores, cpu_quota(root).value_or(cores)))));
}

MemoryBound memory_limit(const fs::path& root) {
  MemoryBound least = {.bytes = kibibytes(root / "proc/meminfo", "MemTotal").value_or(INT64_MAX)};
  const Groups groups = groups_of(root, "memory");
  const char* name = groups.is_unified ? "memory.max" : "memory.limit_in_bytes";
  for (const fs::path& group : groups.folders)
    bound(least, first_number(group / name),
          "give the job or the container more memory (its control group's limit)");
  return least;
}

ShellLimits shell_limits() {
  return {.address_space = shell_limit(RLIMIT_AS), .data = shell_limit(RLIMIT_DATA)};
}

MemoryBound reservable_memory(const fs::path& root, const ShellLimits& limits) {
  MemoryBound least = memory_limit(root);
  const fs::path proc = root / "proc";
  const fs::path status = proc / "self/status";
  bound(least, half_of_what_is_left(limits.address_space, kibibytes(status, "VmSize")),
        "raise ulimit -v");
  bound(least, half_of_what_is_left(limits.data, kibibytes(status, "VmData")), "raise ulimit -d");
  if (first_number(proc / "sys/vm/overcommit_memory") == 2)
    bound(least,
          half_of_what_is_left(kibibytes(proc / "meminfo", "CommitLimit"),
                               kibibytes(proc / "meminfo", "Committed_AS")),
          "raise what the machine lets processes reserve (vm.overcommit_ratio, "
          "vm.overcommit_memory)");
  return least;
}

}  // namespace fathom
