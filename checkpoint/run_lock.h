// One process writes a run directory at a time. RUN/.lock is held by flock; RUN/.owner says which
// process owns the run and contains the fencing token, an integer that grows with every owner. A
// process that was suspended while another took over finds a larger token when it resumes, and must
// not write.
//
// Where flock does not work (on some network file systems) the owner file alone decides. An owner
// on this host is gone if its process is; one of the same batch job is gone too, because the
// scheduler ended it before it started this process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace fathom::checkpoint {

struct RunLockOptions {
  std::string job_id;      // "": from SLURM_JOB_ID, PBS_JOBID or LSB_JOBID
  bool take_over = false;  // take the run from an owner that may be alive; its saves will fail
};

class RunLock {
 public:
  // InvalidArgument: another process owns it; named with host, pid, job and age. IoError.
  [[nodiscard]] static RunLock acquire(const std::filesystem::path& run_directory,
                                       const RunLockOptions& options = {});
  RunLock(RunLock&&) noexcept;
  RunLock& operator=(RunLock&&) noexcept;
  ~RunLock();  // marks the owner file released

  [[nodiscard]] int64_t token() const;

  // Why the lock was taken although its last owner had not released it; "" if it had.
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
