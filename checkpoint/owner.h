// RUN/.owner: who holds, or last held, a run directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/file.h"

namespace fathom::checkpoint {

inline constexpr const char* kOwnerName = ".owner";

struct Owner {
  std::string host;
  int64_t pid = 0;
  int64_t process_start = 0;  // clock ticks after boot, from /proc: tells a reused pid
  std::string job_id;
  int64_t since = 0;  // seconds since 1970
  int64_t token = 0;
  std::string nonce;   // tells holders apart even if the owner file was deleted and tokens repeat
  bool locked = true;  // false: holds the run by its token alone, without the lock
  bool released = false;
};

// This process, from now on.
[[nodiscard]] Owner this_process(const std::string& job_id, int64_t token);

// Nothing if there is no such file. One that cannot be parsed counts as an unknown host's.
// IoError.
[[nodiscard]] std::optional<Owner> read_owner(const Directory& run_directory);

// Replaces the file in one step. IoError.
void write_owner(const Directory& run_directory, const Owner& owner);

// False only if it ran on this host and is certainly gone.
[[nodiscard]] bool may_be_alive(const Owner& owner);

// "host n1, pid 12, job 7, since 3 h 5 min".
[[nodiscard]] std::string describe(const Owner& owner);

}  // namespace fathom::checkpoint
