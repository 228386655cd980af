// Saves that the disk, the system or a kill interrupts: what was there stays, nothing half is left,
// and the process goes on.
#include <algorithm>
#include <csignal>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/resolve.h"
#include "core/base/error.h"
#include "tests/checkpoint/file_calls.h"
#include "tests/checkpoint/support.h"
#include "tests/support/file_size_limit.h"

namespace fathom::checkpoint {
namespace {

using support::FileSizeLimit;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

void save(CheckpointDirectory& checkpoints, int64_t step, const Retention& retention = {}) {
  SmallState state{uint64_t(step)};
  SavingArchive archive;
  state.visit(archive);
  static_cast<void>(checkpoints.save(archive, info_of(step), retention));
}

TEST(FailedSave, OnAFullDiskLeavesTheOlderOnesAndTheProcessHealthy) {
  TemporaryDirectory run;
  const RunLock lock = RunLock::acquire(run.path());
  auto checkpoints = CheckpointDirectory::open_for_writing(run.path(), lock);
  save(checkpoints, 100);
  const fs::path root = run.path() / "checkpoints";
  const auto bytes = fs::file_size(root / step_name(100) / kStateName);
  ASSERT_GT(bytes, 20000u);

  for (rlim_t limit = 0; limit < bytes; limit += 1777) {
    const std::string message = message_of<IoError>([&] {
      const FileSizeLimit full(limit);
      save(checkpoints, 200);
    });
    EXPECT_THAT(message, HasSubstr(kStateName));
    EXPECT_THAT(message, HasSubstr("File too large; make room"));
    EXPECT_THAT(names_in(root), ElementsAre("latest", "step-00000100"));
  }
  save(checkpoints, 200);
  EXPECT_EQ(open_checkpoint(run.path()).manifest().step, 200);
}

TEST(FailedSave, InAHintIsOnlyAWarning) {
  TemporaryDirectory run;
  const RunLock lock = RunLock::acquire(run.path());
  auto checkpoints = CheckpointDirectory::open_for_writing(run.path(), lock);
  fs::create_directories(run.path() / "checkpoints" / "latest" / "in the way");

  SmallState state(100);
  SavingArchive archive;
  state.visit(archive);
  const SaveReport saved = checkpoints.save(archive, info_of(100), {});
  EXPECT_THAT(saved.warnings, SizeIs(1));
  EXPECT_THAT(saved.warnings.at(0), HasSubstr("latest"));
  EXPECT_EQ(open_checkpoint(run.path()).manifest().step, 100);
}

TEST(OpenForWriting, FailsBeforeTheFirstStepWhereNothingCanBeWritten) {
  TemporaryDirectory run;
  const RunLock lock = RunLock::acquire(run.path());
  static_cast<void>(CheckpointDirectory::open_for_writing(run.path(), lock));
  const fs::path root = run.path() / "checkpoints";
  fs::permissions(run.path(), fs::perms(0755));
  fs::permissions(root, fs::perms(0555));
  const bool is_root = ::geteuid() == 0;  // for whom rights do not count
  if (is_root && ::seteuid(65534) != 0) GTEST_SKIP() << "root cannot become another user here";
  const std::string message = message_of<IoError>(
      [&] { static_cast<void>(CheckpointDirectory::open_for_writing(run.path(), lock)); });
  ASSERT_TRUE(!is_root || ::seteuid(0) == 0);
  fs::permissions(root, fs::perms(0755));

  EXPECT_THAT(message, HasSubstr("checkpoint: creating " + root.string()));
  EXPECT_THAT(message, HasSubstr("Permission denied; is the directory writable?"));
}

TEST(OpenForWriting, FailsOnAFullDisk) {
  TemporaryDirectory run;
  const RunLock lock = RunLock::acquire(run.path());
  EXPECT_THAT(message_of<IoError>([&] {
                const FileSizeLimit full(0);
                static_cast<void>(CheckpointDirectory::open_for_writing(run.path(), lock));
              }),
              HasSubstr("File too large; make room"));
}

// Runs `body` in a child process; returns its wait status after `wait` has been called with its
// pid.
template <class Body, class Wait>
int in_child(Body body, Wait wait) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      body();
    } catch (...) {
      ::_exit(99);
    }
    ::_exit(0);
  }
  wait(child);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

// The calls of a second save, each by function and name.
std::vector<FileCall> calls_of_a_save() {
  TemporaryDirectory run;
  const RunLock lock = RunLock::acquire(run.path());
  auto checkpoints = CheckpointDirectory::open_for_writing(run.path(), lock);
  save(checkpoints, 100);
  std::vector<FileCall> calls;
  const FileCallWatcher watcher([&](const FileCall& call) {
    calls.push_back(call);
    return 0;
  });
  save(checkpoints, 200, {.keep_last = 1});
  return calls;
}

bool is_rename_of_200(const FileCall& call) {
  return call.function == "renameat" && call.name == step_name(200);
}

TEST(KilledSave, AtEachCallLeavesOldOrNewAndTheNextStartCleansUp) {
  const std::vector<FileCall> calls = calls_of_a_save();
  const auto rename = std::find_if(calls.begin(), calls.end(), is_rename_of_200) - calls.begin();
  ASSERT_GT(rename, 8);
  ASSERT_LT(rename + 8, ptrdiff_t(calls.size()));

  for (ptrdiff_t last = 0; last < ptrdiff_t(calls.size()); ++last) {
    TemporaryDirectory run;
    const int status = in_child(
        [&] {
          const RunLock lock = RunLock::acquire(run.path());
          auto checkpoints = CheckpointDirectory::open_for_writing(run.path(), lock);
          save(checkpoints, 100);
          ptrdiff_t made = 0;
          const FileCallWatcher watcher([&](const FileCall&) {
            if (made++ == last) ::kill(::getpid(), SIGKILL);
            return 0;
          });
          save(checkpoints, 200, {.keep_last = 1});
        },
        [](pid_t) {});
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << last;

    const RunLock lock = RunLock::acquire(run.path());
    EXPECT_THAT(lock.note(), HasSubstr("which ended without releasing it"));
    const auto checkpoints = CheckpointDirectory::open_for_writing(run.path(), lock);
    const SearchResult found = checkpoints.newest_valid();
    ASSERT_TRUE(found.checkpoint) << last;
    EXPECT_EQ(found.checkpoint->manifest().step, last > rename ? 200 : 100) << last;
    EXPECT_THAT(found.skipped, IsEmpty());
    for (const std::string& name : names_in(checkpoints.path()))
      EXPECT_FALSE(name.starts_with(".tmp")) << name;
  }
}

// Each call of the save itself; those after the rename are about hints and older checkpoints.
TEST(FailedSave, AtAnyCallLeavesTheOlderOneAndTheProcessHealthy) {
  const std::vector<FileCall> calls = calls_of_a_save();
  const auto rename = std::find_if(calls.begin(), calls.end(), is_rename_of_200) - calls.begin();
  TemporaryDirectory run;
  const RunLock lock = RunLock::acquire(run.path());
  auto checkpoints = CheckpointDirectory::open_for_writing(run.path(), lock);
  save(checkpoints, 100);
  for (ptrdiff_t failing = 0; failing <= rename; ++failing) {
    ptrdiff_t made = 0;
    const std::string message = message_of<IoError>([&] {
      const FileCallWatcher watcher([&](const FileCall&) { return made++ == failing ? EIO : 0; });
      save(checkpoints, 200);
    });
    EXPECT_THAT(message, HasSubstr("Input/output error")) << failing;
    EXPECT_THAT(names_in(checkpoints.path()), ElementsAre("latest", "step-00000100")) << failing;
  }
  save(checkpoints, 200);
  EXPECT_EQ(open_checkpoint(run.path()).manifest().step, 200);
}

TEST(KilledSave, AtAnyTimeLosesNoAcknowledgedStep) {
  TemporaryDirectory run;
  int64_t acknowledged = 0;
  for (int round = 0; round < 10; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const int status = in_child(
        [&] {
          const RunLock lock = RunLock::acquire(run.path());
          auto checkpoints = CheckpointDirectory::open_for_writing(run.path(), lock);
          for (int64_t step = acknowledged + 1;; ++step) {
            save(checkpoints, step);
            if (::write(ends[1], &step, sizeof step) != sizeof step) ::_exit(98);
          }
        },
        [&](pid_t child) {
          ::close(ends[1]);
          // After the first acknowledgement, so that each round makes progress.
          int64_t step = 0;
          if (::read(ends[0], &step, sizeof step) == sizeof step) acknowledged = step;
          ::usleep(useconds_t(philox({5, 5}, {uint32_t(round), 0, 0, 0})[0] % 50000));
          ::kill(child, SIGKILL);
          while (::read(ends[0], &step, sizeof step) == sizeof step) acknowledged = step;
          ::close(ends[0]);
        });
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);

    const SearchResult found = CheckpointDirectory::open(run.path()).newest_valid();
    ASSERT_TRUE(found.checkpoint);
    EXPECT_THAT(found.skipped, IsEmpty());
    const int64_t step = found.checkpoint->manifest().step;
    EXPECT_TRUE(step == acknowledged || step == acknowledged + 1) << step << " " << acknowledged;
    SmallState loaded(0);
    LoadingArchive archive(*found.checkpoint);
    loaded.visit(archive);
    EXPECT_EQ(loaded, SmallState(uint64_t(step)));
    acknowledged = step;
  }
}

}  // namespace
}  // namespace fathom::checkpoint
