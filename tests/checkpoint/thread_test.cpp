// Saves on a helper thread, as training makes them.
#include <cerrno>
#include <future>

#include <gmock/gmock.h>

#include "checkpoint/resolve.h"
#include "core/base/error.h"
#include "tests/checkpoint/file_calls.h"
#include "tests/checkpoint/support.h"

namespace fathom::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SaveOnAThread : public ::testing::Test {
 protected:
  // The thread ends with the save.
  std::future<void> save(SmallState& state) {
    return std::async(std::launch::async, [&] {
      SavingArchive archive;
      state.visit(archive);
      static_cast<void>(checkpoints_.save(archive, info_of(state.step), {}));
    });
  }
  void save_here(int64_t step) {
    SmallState state{uint64_t(step)};
    SavingArchive archive;
    state.visit(archive);
    static_cast<void>(checkpoints_.save(archive, info_of(step), {}));
  }
  [[nodiscard]] fs::path file(int64_t step, const char* name) const {
    return checkpoints_.path() / step_name(step) / name;
  }

  TemporaryDirectory run_;
  RunLock lock_ = RunLock::acquire(run_.path());
  CheckpointDirectory checkpoints_ = CheckpointDirectory::open_for_writing(run_.path(), lock_);
};

TEST_F(SaveOnAThread, GivesTheSameBytes) {
  save_here(7);
  const std::string state_bytes = read_text(file(7, kStateName));
  const std::string manifest = read_text(file(7, kManifestName));

  SmallState state(7);
  save(state).get();  // replaces it

  EXPECT_TRUE(read_text(file(7, kStateName)) == state_bytes);
  EXPECT_EQ(read_text(file(7, kManifestName)), manifest);
}

// The next thread, and then the first one, find nothing left behind by those before.
TEST_F(SaveOnAThread, ThatFailsIsReportedThereAndTheNextOneWorks) {
  save_here(100);
  SmallState state(200);
  for (const char* failing : {"mkdirat", "write", "fsync", "renameat"}) {
    const FileCallWatcher full(
        [&](const FileCall& call) { return call.function == failing ? ENOSPC : 0; });
    EXPECT_THAT(message_of<IoError>([&] { save(state).get(); }), HasSubstr("make room")) << failing;
  }
  state.bias[3] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(message_of<TrainingError>([&] { save(state).get(); }),
              HasSubstr("model/encoder.1.fc1.bias element 3 is not finite at step 200"));
  EXPECT_THAT(names_in(checkpoints_.path()), ElementsAre("latest", "step-00000100"));

  state = SmallState(200);
  save(state).get();
  save_here(300);
  for (const int64_t step : {200, 300})
    EXPECT_NO_THROW(static_cast<void>(Checkpoint::open(checkpoints_.path() / step_name(step))));
}

// What the step loop does meanwhile, on the thread that owns the lock.
TEST_F(SaveOnAThread, LetsTheOwnerOfTheLockAskAndWork) {
  std::vector<double> work(1000, 1.0);
  for (int64_t step = 1; step <= 20; ++step) {
    SmallState state{uint64_t(step)};
    std::future<void> done = save(state);
    while (done.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      for (double& w : work) w += 1 / w;
      EXPECT_TRUE(lock_.is_owner());
    }
    done.get();
  }
  EXPECT_EQ(open_checkpoint(run_.path()).manifest().step, 20);
}

}  // namespace
}  // namespace fathom::checkpoint
