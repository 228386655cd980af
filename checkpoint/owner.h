// RUN/.owner: the process that owns, or last owned, a run directory.
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
  int64_t process_start = 0;  // clock ticks after boot, from /proc: detects a reused pid
  std::string job_id;
  int64_t since = 0;  // seconds since 1970
  int64_t token = 0;
  std::string nonce;   // tells owners apart even if the file was deleted and tokens repeat
  bool locked = true;  // false: owns the run by its token alone, without the lock
  bool released = false;
};

// This process, as the owner from now on.
[[nodiscard]] Owner this_process(const std::string& job_id, int64_t token);

// Nothing if there is no such file. If it cannot be parsed, an owner on an unknown host. IoError.
[[nodiscard]] std::optional<Owner> read_owner(const Directory& run_directory);

// Replaces the file atomically. IoError.
void write_owner(const Directory& run_directory, const Owner& owner);

// False only if the process ran on this host and has certainly ended.
[[nodiscard]] bool may_be_alive(const Owner& owner);

// "host n1, pid 12, job 7, since 3 h 5 min".
[[nodiscard]] std::string describe(const Owner& owner);

}  // namespace fathom::checkpoint
