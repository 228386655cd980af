#include "checkpoint/run_lock.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "checkpoint/files.h"
#include "checkpoint/owner.h"
#include "core/base/error.h"

namespace fathom::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockName = ".lock";

enum class Flock { kHeld, kHeldByAnother, kUnsupported };

Flock try_flock(const FileDescriptor& file, const fs::path& path) {
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return Flock::kHeldByAnother;
    constexpr int kNotSupported = 524;  // the kernel's ENOTSUPP, which NFS lets out
    constexpr std::array kNoLocks = {ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL, kNotSupported};
    if (std::find(kNoLocks.begin(), kNoLocks.end(), errno) != kNoLocks.end())
      return Flock::kUnsupported;
    fail_io("locking", path, errno);
  }
  return Flock::kHeld;
}

std::string job_from_environment() {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"})
    if (const char* job = std::getenv(name)) return job;
  return "";
}

// Decides whether the last holder stands in the way; the note says why not, if it had not released.
std::string note_or_refuse(const fs::path& run, const std::optional<Owner>& last, Flock flock,
                           const std::string& job_id, bool take_over) {
  const bool held = last && !last->released;
  const std::string holder = last ? describe(*last) : "a process that has not named itself yet";
  if (take_over && (held || flock == Flock::kHeldByAnother))
    return join("taken over on request from ", holder);
  require(flock != Flock::kHeldByAnother, "run lock: ", run.string(), " is in use by ", holder,
          "; stop that job, or give this one another run.directory");
  if (!held) return "";
  // The lock would still be held if its last holder lived, unless that one never had it.
  if (flock == Flock::kHeld && last->locked)
    return join("taken over from ", holder, ", which ended unreleased");
  if (!may_be_alive(*last)) return join("taken over from ", holder, ", whose process is gone");
  if (!job_id.empty() && last->job_id == job_id)
    return join("taken over from ", holder, ", an earlier start of this job");
  fail("run lock: ", run.string(), " is in use by ", holder,
       ", which does not hold the file lock; stop that job, or if it is certainly gone delete ",
       (run / kOwnerName).string());
}

}  // namespace

struct RunLock::Impl {
  fs::path run;
  FileDescriptor directory;
  FileDescriptor lock;
  Owner owner;
  std::string note;

  [[nodiscard]] std::optional<Owner> usurper() const {
    const std::optional<Owner> now = read_owner(directory, run);
    if (now && now->token == owner.token && now->nonce == owner.nonce) return std::nullopt;
    return now ? now : Owner{};
  }
};

RunLock RunLock::acquire(const fs::path& run_directory, const RunLockOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->run = fs::weakly_canonical(run_directory);
  impl->directory = open_directory(impl->run);
  const fs::path lock_path = impl->run / kLockName;
  impl->lock = FileDescriptor(
      ::openat(impl->directory.get(), kLockName, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (impl->lock.get() < 0) fail_io("opening", lock_path, errno);

  const Flock flock = try_flock(impl->lock, lock_path);
  const std::optional<Owner> last = read_owner(impl->directory, impl->run);
  const std::string job_id = options.job_id.empty() ? job_from_environment() : options.job_id;
  impl->note = note_or_refuse(impl->run, last, flock, job_id, options.take_over);
  impl->owner = this_process(job_id, (last ? last->token : 0) + 1);
  impl->owner.locked = flock == Flock::kHeld;
  write_owner(impl->directory, impl->run, impl->owner);
  // Without flock two may have come this far; the later writer wins, the other sees it here or at
  // the fence of its first save.
  RunLock lock(std::move(impl));
  lock.require_mine();
  return lock;
}

RunLock::RunLock(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RunLock::RunLock(RunLock&&) noexcept = default;
RunLock& RunLock::operator=(RunLock&&) noexcept = default;

RunLock::~RunLock() {
  if (!impl_) return;
  try {
    if (impl_->usurper()) return;
    impl_->owner.released = true;
    write_owner(impl_->directory, impl_->run, impl_->owner);
  } catch (const Error&) {
    // The next holder finds an unreleased owner whose flock is free: it takes over with a note.
  }
}

int64_t RunLock::token() const { return impl_->owner.token; }
const std::string& RunLock::note() const { return impl_->note; }
bool RunLock::still_mine() const { return !impl_->usurper(); }

void RunLock::require_mine() const {
  const std::optional<Owner> other = impl_->usurper();
  require(!other || other->token > 0, "run lock: ", (impl_->run / kOwnerName).string(),
          " is gone: the run directory was removed or emptied while this process used it; it must "
          "stop. Do not delete the directory of a run that lives");
  if (other)
    fail("run lock: ", impl_->run.string(), " was taken over by ", describe(*other),
         " with fencing token ", other->token, ", ours is ", token(),
         "; this process must stop and not write there");
}

}  // namespace fathom::checkpoint
