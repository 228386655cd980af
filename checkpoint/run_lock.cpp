#include "checkpoint/run_lock.h"

#include "checkpoint/files.h"
#include "checkpoint/owner.h"
#include "core/base/error.h"
#include "core/base/system.h"

namespace fathom::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockName = ".lock";

// Refuses if the last owner may be alive. Else returns why the run is free although it was not
// released; "" if it was.
std::string note_or_refuse(const fs::path& run, const std::optional<Owner>& last,
                           FileLock::State lock, const std::string& job_id, bool take_over) {
  const bool held = last && !last->released;
  const std::string holder = last ? describe(*last) : "a process that is still starting";
  if (take_over && (held || lock == FileLock::State::kHeldByAnother))
    return join("taken over on request from ", holder);
  require(lock != FileLock::State::kHeldByAnother, "run lock: ", run.string(), " is in use by ",
          holder, "; stop that job, or give this one another run.directory");
  if (!held) return "";
  // A living owner would still hold the lock, unless it never did.
  if (lock == FileLock::State::kHeld && last->locked)
    return join("taken over from ", holder, ", which ended without releasing it");
  if (!may_be_alive(*last)) return join("taken over from ", holder, ", whose process is gone");
  if (!job_id.empty() && last->job_id == job_id)
    return join("taken over from ", holder, ", an earlier start of this job");
  fail("run lock: ", run.string(), " is in use by ", holder,
       ", which does not hold the file lock; stop that job, or if it is certainly gone delete ",
       (run / kOwnerName).string());
}

}  // namespace

struct RunLock::Impl {
  explicit Impl(const fs::path& run) : directory(kPlace, run), lock(directory, kLockName) {}

  Directory directory;
  FileLock lock;
  Owner owner;
  std::string note;

  [[nodiscard]] const fs::path& run() const { return directory.path(); }

  // Token 0 if the file is gone or unreadable.
  [[nodiscard]] Owner current_owner() const { return read_owner(directory).value_or(Owner{}); }

  [[nodiscard]] bool is_ours(const Owner& current) const {
    return current.token == owner.token && current.nonce == owner.nonce;
  }
};

RunLock RunLock::acquire(const fs::path& run_directory, const RunLockOptions& options) {
  auto impl = std::make_unique<Impl>(fs::weakly_canonical(run_directory));
  const FileLock::State state = impl->lock.state();
  const std::optional<Owner> last = read_owner(impl->directory);
  const std::string job_id = options.job_id.empty() ? batch_job() : options.job_id;
  impl->note = note_or_refuse(impl->run(), last, state, job_id, options.take_over);
  impl->owner = this_process(job_id, (last ? last->token : 0) + 1);
  impl->owner.locked = state == FileLock::State::kHeld;
  write_owner(impl->directory, impl->owner);
  // Without flock two processes may get this far. The later one wins; the other notices here, or
  // in its first save.
  RunLock lock(std::move(impl));
  lock.require_owner();
  return lock;
}

RunLock::RunLock(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RunLock::RunLock(RunLock&&) noexcept = default;
RunLock& RunLock::operator=(RunLock&&) noexcept = default;

RunLock::~RunLock() {
  if (!impl_) return;
  try {
    if (!is_owner()) return;
    impl_->owner.released = true;
    write_owner(impl_->directory, impl_->owner);
  } catch (const Error&) {
    // The next owner finds this one unreleased but its lock free, and takes over with a note.
  }
}

int64_t RunLock::token() const { return impl_->owner.token; }
const std::string& RunLock::note() const { return impl_->note; }
bool RunLock::is_owner() const { return impl_->is_ours(impl_->current_owner()); }

void RunLock::require_owner() const {
  const Owner current = impl_->current_owner();
  if (impl_->is_ours(current)) return;
  require(current.token > 0, "run lock: ", (impl_->run() / kOwnerName).string(),
          " is gone: the run directory was removed or emptied while this process used it; it must "
          "stop. Do not delete the directory of a running job");
  fail("run lock: ", impl_->run().string(), " was taken over by ", describe(current),
       " with fencing token ", current.token, ", ours is ", token(),
       "; this process must stop and not write there");
}

}  // namespace fathom::checkpoint
