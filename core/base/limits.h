// What this process may use of the machine, where that is less than the machine has: cores by the
// affinity mask and the quota of a control group, memory by a control group, the shell's limits and
// strict overcommit. Control groups of both versions, with all of those above the process's own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fathom {

// Of the affinity mask, ascending; never empty.
[[nodiscard]] std::vector<int> allowed_cores();

// How many CPUs' time the control groups allow; none without a quota. Files are looked for below
// `root`, here and below: tests have trees of their own.
[[nodiscard]] std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

// Cores of the mask, but not more than the quota is worth, rounded up. At least 1.
[[nodiscard]] int available_cores(const std::filesystem::path& root = "/");

struct MemoryBound {
  int64_t bytes = 0;
  std::string remedy = {};  // "raise ulimit -v"; empty where the machine has no more
};

// Memory that may be filled: what is installed, or a control group's limit that is less.
[[nodiscard]] MemoryBound memory_limit(const std::filesystem::path& root = "/");

// Bytes, by getrlimit(); none without a limit.
struct ShellLimits {
  std::optional<int64_t> address_space = {}, data = {};
};
[[nodiscard]] ShellLimits shell_limits();

// Memory that may be reserved in one block before it is filled: all of memory_limit(), but of what
// a limit on reservations leaves, 128 MiB apart, only half, since the rest is needed otherwise.
[[nodiscard]] MemoryBound reservable_memory(const std::filesystem::path& root = "/",
                                            const ShellLimits& limits = shell_limits());

}  // namespace fathom
