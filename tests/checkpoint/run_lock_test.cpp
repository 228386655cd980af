#include "checkpoint/run_lock.h"

#include <cerrno>
#include <optional>

#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/owner.h"
#include "core/base/error.h"
#include "tests/checkpoint/support.h"

namespace {
int flock_error = 0;  // what flock says in place of working; 0: it works
}

// Stands before the C library's, so that a file system without locks can be had anywhere.
extern "C" int flock(int fd, int operation) {
  if (flock_error == 0) return int(::syscall(SYS_flock, fd, operation));
  errno = flock_error;
  return -1;
}

namespace fathom::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RunLockTest : public ::testing::Test {
 protected:
  ~RunLockTest() override { flock_error = 0; }
  const fs::path& run() const { return directory_.path(); }

  std::string refusal(const RunLockOptions& options = {}) const {
    return message_of<InvalidArgument>(
        [&] { static_cast<void>(RunLock::acquire(run(), options)); });
  }
  // What a holder elsewhere would have left.
  void plant_owner(Owner owner) const { write_owner(Directory("test", run()), owner); }
  void hold_and_die() const {
    const pid_t child = ::fork();
    if (child == 0) {
      static_cast<void>(new RunLock(RunLock::acquire(run(), {.job_id = "7"})));
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }

 private:
  TemporaryDirectory directory_;
};

TEST_F(RunLockTest, CountsItsHolders) {
  for (int64_t token = 1; token <= 3; ++token) {
    const RunLock lock = RunLock::acquire(run());
    EXPECT_EQ(lock.token(), token);
    EXPECT_EQ(lock.note(), "");
    EXPECT_TRUE(lock.is_owner());
  }
}

TEST_F(RunLockTest, RefusesASecondHolderByName) {
  const RunLock lock = RunLock::acquire(run(), {.job_id = "4711"});
  const std::string message = refusal();
  EXPECT_THAT(message, HasSubstr("run lock: " + run().string() + " is in use by host "));
  EXPECT_THAT(message, HasSubstr("pid " + std::to_string(::getpid()) + ", job 4711, since "));
  EXPECT_TRUE(lock.is_owner());
}

TEST_F(RunLockTest, TakesTheJobFromTheEnvironment) {
  ::setenv("SLURM_JOB_ID", "8150", 1);
  const RunLock lock = RunLock::acquire(run());
  ::unsetenv("SLURM_JOB_ID");
  EXPECT_THAT(refusal(), HasSubstr("job 8150"));
}

TEST_F(RunLockTest, IsTakenFromADeadHolderWithANote) {
  hold_and_die();
  const RunLock lock = RunLock::acquire(run());
  EXPECT_EQ(lock.token(), 2);
  EXPECT_THAT(lock.note(), HasSubstr("taken over from host "));
  EXPECT_THAT(lock.note(), HasSubstr("job 7"));
  EXPECT_THAT(lock.note(), HasSubstr("which ended without releasing it"));
}

TEST_F(RunLockTest, TakenOverOnRequestFencesTheSleeperOff) {
  std::optional<RunLock> first = RunLock::acquire(run(), {.job_id = "1"});
  const RunLock second = RunLock::acquire(run(), {.job_id = "2", .take_over = true});
  EXPECT_EQ(second.token(), 2);
  EXPECT_THAT(second.note(), HasSubstr("taken over on request from host "));
  EXPECT_FALSE(first->is_owner());
  EXPECT_THAT(message_of<InvalidArgument>([&] { first->require_owner(); }),
              AllOf(HasSubstr(", job 2, since "),
                    HasSubstr(" with fencing token 2, ours is 1; this process must stop")));

  first.reset();  // must not release what is the second's
  EXPECT_TRUE(second.is_owner());
  EXPECT_THAT(refusal(), HasSubstr("job 2"));
}

TEST_F(RunLockTest, IsLostWithItsOwnerFile) {
  const RunLock lock = RunLock::acquire(run());
  fs::remove(run() / kOwnerName);
  EXPECT_FALSE(lock.is_owner());
  EXPECT_THAT(message_of<InvalidArgument>([&] { lock.require_owner(); }),
              HasSubstr((run() / kOwnerName).string() + " is gone: "));
}

TEST_F(RunLockTest, SurvivesAnUnreadableOwnerFile) {
  write_text(run() / kOwnerName, "{");
  const RunLock lock = RunLock::acquire(run());
  EXPECT_THAT(lock.note(), HasSubstr("host unknown"));
  EXPECT_TRUE(lock.is_owner());
}

TEST_F(RunLockTest, RefusesALinkInPlaceOfItsFile) {
  write_text(run() / "canary", "x");
  fs::create_symlink(run() / "canary", run() / ".lock");
  EXPECT_THAT(message_of<IoError>([&] { static_cast<void>(RunLock::acquire(run())); }),
              HasSubstr("opening " + (run() / ".lock").string()));
}

TEST_F(RunLockTest, NeedsTheRunDirectory) {
  EXPECT_THAT(message_of<IoError>([&] { static_cast<void>(RunLock::acquire(run() / "no")); }),
              HasSubstr("No such file or directory"));
}

class WithoutLocks : public RunLockTest, public ::testing::WithParamInterface<int> {
 protected:
  WithoutLocks() { flock_error = GetParam(); }
};

TEST_P(WithoutLocks, TheOwnerFileRefusesASecondHolder) {
  const RunLock lock = RunLock::acquire(run(), {.job_id = "1"});
  const std::string message = refusal({.job_id = "2"});
  EXPECT_THAT(message, HasSubstr("is in use by host "));
  EXPECT_THAT(message, HasSubstr("which does not hold the file lock"));
}

TEST_P(WithoutLocks, ADeadProcessOfThisHostIsNoHolder) {
  hold_and_die();
  EXPECT_THAT(RunLock::acquire(run()).note(), HasSubstr("whose process is gone"));
  EXPECT_EQ(RunLock::acquire(run()).note(), "");  // the one before was released
}

TEST_P(WithoutLocks, AReusedPidIsNoHolder) {
  Owner owner = this_process("", 5);
  owner.process_start -= 1;
  plant_owner(owner);
  const RunLock lock = RunLock::acquire(run());
  EXPECT_THAT(lock.note(), HasSubstr("whose process is gone"));
  EXPECT_EQ(lock.token(), 6);
}

TEST_P(WithoutLocks, AnotherHostIsBelievedUnlessItRanThisJob) {
  Owner owner = this_process("7", 5);
  owner.host = "another-host";
  plant_owner(owner);
  EXPECT_THAT(refusal({.job_id = "8"}), HasSubstr("host another-host, pid "));
  EXPECT_THAT(RunLock::acquire(run(), {.job_id = "7"}).note(),
              HasSubstr("an earlier start of this job"));
}

INSTANTIATE_TEST_SUITE_P(Errno, WithoutLocks, ::testing::Values(ENOLCK, ENOSYS, EOPNOTSUPP, 524));

TEST_F(RunLockTest, OtherFailuresOfTheLockAreErrors) {
  flock_error = EIO;
  EXPECT_THAT(message_of<IoError>([&] { static_cast<void>(RunLock::acquire(run())); }),
              HasSubstr("locking"));
}

}  // namespace
}  // namespace fathom::checkpoint
