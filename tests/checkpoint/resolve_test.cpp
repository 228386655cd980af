#include "checkpoint/resolve.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "tests/checkpoint/support.h"

namespace fathom::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Resolve : public ::testing::Test {
 protected:
  void save(int64_t step, double loss = 1) {
    SmallState state{uint64_t(step)};
    SavingArchive archive;
    state.visit(archive);
    SaveInfo info = info_of(step);
    info.validation = {.data = "", .metric = Metric{"validation_loss", loss}, .figures = {}};
    static_cast<void>(checkpoints_.save(archive, info, {}));
  }
  void damage(int64_t step) { fs::resize_file(of(step) / kStateName, 100); }
  [[nodiscard]] fs::path of(int64_t step) const { return root() / step_name(step); }
  [[nodiscard]] const fs::path& root() const { return checkpoints_.path(); }
  [[nodiscard]] const fs::path& run() const { return directory_.path(); }

  static fs::path opened(const fs::path& path) { return open_checkpoint(path).path(); }
  static std::string refusal(const fs::path& path) {
    return message_of<CheckpointError>([&] { static_cast<void>(open_checkpoint(path)); });
  }

 private:
  TemporaryDirectory directory_;
  RunLock lock_ = RunLock::acquire(run());
  CheckpointDirectory checkpoints_ = CheckpointDirectory::open_for_writing(run(), lock_);
};

TEST_F(Resolve, OfACheckpointIsThatOne) {
  for (const int64_t step : {100, 200}) save(step);
  EXPECT_EQ(opened(of(100)), of(100));
  damage(200);
  EXPECT_THAT(refusal(of(200)), HasSubstr("state.h5 has 100 bytes"));
}

TEST_F(Resolve, OfARunIsItsNewestValidOne) {
  for (const int64_t step : {100, 200, 300}) save(step);
  damage(300);
  std::vector<fs::path> skipped;
  const Checkpoint found =
      open_checkpoint(run(), [&](const SkippedCheckpoint& s) { skipped.push_back(s.path); });
  EXPECT_EQ(found.path(), of(200));
  EXPECT_THAT(skipped, ElementsAre(of(300)));
  EXPECT_THAT(candidates(run()), ElementsAre(of(300), of(200), of(100)));
}

TEST_F(Resolve, OfTheFolderOfARunsCheckpointsIsAsOfTheRun) {
  for (const int64_t step : {100, 200}) save(step);
  EXPECT_EQ(opened(root()), of(200));
  EXPECT_THAT(candidates(root()), ElementsAre(of(200), of(100)));
}

TEST_F(Resolve, OfARunWithNothingValidListsEveryReason) {
  for (const int64_t step : {100, 200}) {
    save(step);
    damage(step);
  }
  const std::string message = refusal(run());
  EXPECT_THAT(message, HasSubstr("no valid checkpoint, all are damaged:"));
  EXPECT_THAT(message, HasSubstr(step_name(100)));
  EXPECT_THAT(message, HasSubstr(step_name(200)));
}

TEST_F(Resolve, OfARunDoesNotTrustItsHints) {
  for (const int64_t step : {100, 200}) save(step);
  EXPECT_EQ(read_text(root() / "latest"), "step-00000200\n");
  write_text(root() / "latest", "step-00000100\n");
  EXPECT_EQ(opened(run()), of(200));
  fs::remove(root() / "latest");
  EXPECT_EQ(opened(run()), of(200));
}

TEST_F(Resolve, OfAHintIsTheOneItNames) {
  for (const int64_t step : {100, 200, 300}) save(step, step == 200 ? 1 : 2);

  EXPECT_EQ(opened(root() / "best"), of(200));
  EXPECT_EQ(opened(root() / "latest"), of(300));
  damage(200);  // a named one is not replaced by another
  EXPECT_THAT(refusal(root() / "best"), HasSubstr(step_name(200)));
  write_text(root() / "best", "nonsense\n");
  EXPECT_THAT(refusal(root() / "best"), HasSubstr("is neither a checkpoint nor a run directory"));
}

TEST_F(Resolve, RefusesWhatIsNeither) {
  EXPECT_THAT(refusal(run()),
              HasSubstr("is neither a checkpoint nor a run directory that has one"));
  EXPECT_THAT(refusal(run() / "no"), HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace fathom::checkpoint
