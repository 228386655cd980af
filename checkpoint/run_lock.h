// One process writes a run directory at a time. RUN/.lock is held by flock; RUN/.owner says who
// holds it and carries the fencing token, an integer that grows with every holder. Whoever was
// taken over while asleep finds a larger token when it wakes and must not write any more.
//
// Where flock does not work (some network file systems) the owner file alone decides: a holder on
// this host counts as gone when its process is, a holder of the same batch job when we run, since
// the scheduler ended it before it started us.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace fathom::checkpoint {

struct RunLockOptions {
  std::string job_id;      // "": from SLURM_JOB_ID, PBS_JOBID or LSB_JOBID
  bool take_over = false;  // take the run from a holder that may be alive; it will be fenced off
};

class RunLock {
 public:
  // InvalidArgument: held by another, named with host, pid, job and age. IoError.
  [[nodiscard]] static RunLock acquire(const std::filesystem::path& run_directory,
                                       const RunLockOptions& options = {});
  RunLock(RunLock&&) noexcept;
  RunLock& operator=(RunLock&&) noexcept;
  ~RunLock();  // marks the owner file released

  [[nodiscard]] int64_t token() const;

  // Why the lock was taken although its last holder had not released it; "" if it had.
  [[nodiscard]] const std::string& note() const;

  // False once another process has taken the run over. IoError if the owner file cannot be read.
  [[nodiscard]] bool is_owner() const;

  // InvalidArgument, naming the new owner, if another process has taken the run over. The caller
  // must then stop.
  void require_owner() const;

 private:
  struct Impl;
  explicit RunLock(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fathom::checkpoint
