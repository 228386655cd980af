#include "checkpoint/directory.h"

#include <set>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/error.h"
#include "tests/checkpoint/file_calls.h"
#include "tests/checkpoint/support.h"

namespace fathom::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class Directory : public ::testing::Test {
 protected:
  SaveReport save(CheckpointDirectory& checkpoints, int64_t step, Retention retention = {},
                  std::optional<Metric> metric = {}) {
    SmallState state{uint64_t(step)};
    SavingArchive archive;
    state.visit(archive);
    SaveInfo info = info_of(step);
    if (metric) info.validation = {.data = "", .metric = metric, .figures = {}};
    return checkpoints.save(archive, info, retention);
  }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> found;
    for (const CheckpointEntry& e : CheckpointDirectory::open(run()).list())
      found.push_back(e.step);
    return found;
  }
  void damage(int64_t step) { fs::resize_file(root() / step_name(step) / kStateName, 100); }
  const fs::path& run() const { return directory_.path(); }
  fs::path root() const { return run() / "checkpoints"; }

  TemporaryDirectory directory_;
};

TEST_F(Directory, IsEmptyBeforeTheFirstSave) {
  const SearchResult found = CheckpointDirectory::open(run()).newest_valid();
  EXPECT_FALSE(found.checkpoint);
  EXPECT_THAT(found.skipped, IsEmpty());
}

TEST_F(Directory, ThatCannotBeLookedIntoIsNotEmpty) {
  const fs::path too_long = run() / std::string(300, 'x');
  EXPECT_THAT(message_of<IoError>([&] { return CheckpointDirectory::open(too_long).list(); }),
              HasSubstr("File name too long"));
}

TEST_F(Directory, FallsBackToTheNewestValidAndSaysWhy) {
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  for (const int64_t step : {100, 200, 300}) save(checkpoints, step);
  damage(300);
  fs::remove(root() / step_name(200) / kManifestName);

  const SearchResult found = checkpoints.newest_valid("run-1");

  ASSERT_TRUE(found.checkpoint);
  EXPECT_EQ(found.checkpoint->manifest().step, 100);
  EXPECT_EQ(found.checkpoint->manifest().fencing_token, lock.token());
  ASSERT_THAT(found.skipped, SizeIs(2));
  EXPECT_EQ(found.skipped[0].path, root() / step_name(300));
  EXPECT_THAT(found.skipped[0].reason, HasSubstr("state.h5 has 100 bytes, expected"));
  EXPECT_THAT(found.skipped[1].reason, HasSubstr("manifest.json is missing"));
}

TEST_F(Directory, WithNothingValidListsEveryReason) {
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  for (const int64_t step : {100, 200}) {
    save(checkpoints, step);
    damage(step);
  }
  const SearchResult found = checkpoints.newest_valid();
  EXPECT_FALSE(found.checkpoint);
  EXPECT_THAT(found.skipped, SizeIs(2));
}

TEST_F(Directory, SkipsTheCheckpointOfAnotherRun) {
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  save(checkpoints, 100);
  const SearchResult found = checkpoints.newest_valid("run-2");
  EXPECT_FALSE(found.checkpoint);
  EXPECT_THAT(found.skipped.at(0).reason, HasSubstr("it is of run 'run-1', this is run 'run-2'"));
}

TEST_F(Directory, KeepsTheLastTheBestAndEveryNth) {
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  const Retention retention{.keep_last = 2, .keep_best = 1, .keep_every = 400};
  const double losses[] = {5, 3, 4, 4.5, 6, 7, 8, 9};
  for (int i = 0; i < 8; ++i)
    save(checkpoints, 100 * (i + 1), retention, Metric{"validation_loss", losses[i]});

  EXPECT_THAT(steps(), ElementsAre(800, 700, 400, 200));
  EXPECT_EQ(read_text(root() / "best"), "step-00000200\n");
  EXPECT_THAT(names_in(root()), SizeIs(6));
}

TEST_F(Directory, PrefersTheHigherOfAScore) {
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  const Retention retention{.keep_last = 1, .keep_best = 1, .keep_every = 0};
  for (const auto& [step, bleu] : {std::pair{100, 20.0}, {200, 30.0}, {300, 25.0}})
    save(checkpoints, step, retention, Metric{"bleu", bleu, Better::kHigher});
  EXPECT_THAT(steps(), ElementsAre(300, 200));
}

TEST_F(Directory, AppliesRetentionOnceAValidationIsKnown) {
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  const Retention retention{.keep_last = 1, .keep_best = 1, .keep_every = 0};
  const auto validate = [&](int64_t step, double loss) {
    return checkpoints.add_validation(
        step, {.data = "", .metric = Metric{"validation_loss", loss}, .figures = {}}, retention);
  };
  save(checkpoints, 100, retention);
  EXPECT_FALSE(fs::exists(root() / "best"));
  (void)validate(100, 5);
  EXPECT_EQ(read_text(root() / "best"), "step-00000100\n");

  save(checkpoints, 200, retention);
  EXPECT_THAT(steps(), ElementsAre(200, 100)) << "until it is known to be worse";
  const SaveReport report = validate(200, 4);
  EXPECT_EQ(read_text(root() / "best"), "step-00000200\n");
  EXPECT_THAT(report.deleted, ElementsAre(root() / step_name(100)));

  save(checkpoints, 300, retention);
  (void)validate(300, 6);
  EXPECT_THAT(steps(), ElementsAre(300, 200));
  EXPECT_EQ(read_text(root() / "best"), "step-00000200\n");
  (void)validate(300, 3);  // replaces the earlier one
  EXPECT_EQ(read_text(root() / "best"), "step-00000300\n");
  EXPECT_THROW((void)validate(400, 1), CheckpointError);
}

// Of one whose validation cannot be read nobody knows whether it is the best.
TEST_F(Directory, DoesNotDeleteWhatHasADamagedValidation) {
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  const Retention retention{.keep_last = 1, .keep_best = 1, .keep_every = 0};
  save(checkpoints, 100, retention, Metric{"validation_loss", 1});
  write_text(root() / step_name(100) / kValidationName, "{");

  const SaveReport report = save(checkpoints, 200, retention, Metric{"validation_loss", 2});

  EXPECT_THAT(steps(), ElementsAre(200, 100));
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("validation.json: ")));
}

TEST_F(Directory, MindsNoHiddenFileInACheckpoint) {
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  save(checkpoints, 100);
  write_text(root() / step_name(100) / ".directory", "of a file browser");
  EXPECT_TRUE(checkpoints.newest_valid().checkpoint.has_value());
  save(checkpoints, 200, {.keep_last = 1, .keep_best = 0, .keep_every = 0});
  EXPECT_THAT(steps(), ElementsAre(200)) << "and it does not keep the checkpoint alive";
}

TEST_F(Directory, NeverDeletesTheOneJustSavedNorTheUnreadable) {
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  const Retention none{.keep_last = 0, .keep_best = 0, .keep_every = 0};
  save(checkpoints, 100, none);
  save(checkpoints, 300, none);
  EXPECT_THAT(steps(), ElementsAre(300));
  write_text(root() / step_name(300) / kManifestName, "newer format");

  const SaveReport saved = save(checkpoints, 200, none);  // resumed from an older one
  EXPECT_THAT(steps(), ElementsAre(300, 200));
  EXPECT_THAT(saved.warnings, IsEmpty());
  const SaveReport later = save(checkpoints, 400, none);
  EXPECT_THAT(steps(), ElementsAre(400, 300));
  EXPECT_THAT(later.deleted, ElementsAre(root() / step_name(200)));
  EXPECT_THAT(later.warnings, SizeIs(1));
}

TEST_F(Directory, DoesNotCountWhatWasSkipped) {
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  for (const int step : {100, 200, 300}) save(checkpoints, step);
  damage(300);
  for (const SkippedCheckpoint& skipped : checkpoints.newest_valid().skipped)
    checkpoints.exclude(skipped);
  save(checkpoints, 350, {.keep_last = 2});
  EXPECT_THAT(steps(), ElementsAre(350, 300, 200));
  save(checkpoints, 400, {.keep_last = 2});
  EXPECT_THAT(steps(), ElementsAre(400, 350, 300));
}

TEST_F(Directory, DeletesOnlyAfterTheNewOneIsVisible) {
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  const Retention one{.keep_last = 1, .keep_best = 0, .keep_every = 0};
  save(checkpoints, 100, one);
  {
    const FileCallWatcher failing([](const FileCall& call) {
      return call.function == "renameat" && call.name == step_name(200) ? EIO : 0;
    });
    EXPECT_THROW(save(checkpoints, 200, one), IoError);
  }
  EXPECT_THAT(steps(), ElementsAre(100));
  EXPECT_THAT(names_in(root()), ElementsAre("latest", "step-00000100"));
}

TEST_F(Directory, SetsAsideWhatIsLaterThanABranchWithItsFirstSave) {
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  for (const int64_t step : {100, 200, 300}) save(checkpoints, step, {.keep_last = 5});
  checkpoints.begin_branch(100);
  EXPECT_THAT(steps(), ElementsAre(300, 200, 100));

  const SaveReport report = save(checkpoints, 200, {.keep_last = 5});

  EXPECT_THAT(steps(), ElementsAre(200, 100));
  ASSERT_THAT(report.set_aside, SizeIs(2));
  EXPECT_THAT(report.warnings, IsEmpty());
  const fs::path folder = report.set_aside[0].parent_path();
  EXPECT_THAT(folder.filename().string(), StartsWith("abandoned-"));
  for (const fs::path& moved : report.set_aside) EXPECT_NO_THROW((void)Checkpoint::open(moved));
  EXPECT_THAT(names_in(folder), ElementsAre("step-00000200", "step-00000300"));

  // Once: later saves are of the branch itself. And they can be moved back.
  EXPECT_THAT(save(checkpoints, 150, {.keep_last = 5}).set_aside, IsEmpty());
  fs::rename(folder / step_name(300), root() / step_name(300));
  EXPECT_EQ(CheckpointDirectory::open(run()).newest_valid().checkpoint->manifest().step, 300);
}

TEST_F(Directory, SetsNothingAsideBeforeTheFilesOfTheSaveAreWritten) {
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  for (const int64_t step : {100, 200}) save(checkpoints, step);
  checkpoints.begin_branch(100);
  {
    const FileCallWatcher failing(
        [](const FileCall& call) { return call.function == "fsync" ? EIO : 0; });
    EXPECT_THROW(save(checkpoints, 101), IoError);
  }
  EXPECT_THAT(steps(), ElementsAre(200, 100));

  EXPECT_THAT(save(checkpoints, 102).set_aside, SizeIs(1));
  EXPECT_THAT(steps(), ElementsAre(102, 100));
}

TEST_F(Directory, KeepsEveryCheckpointWhereASecondBranchFollowsAtOnce) {
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  std::set<fs::path> folders;
  for (int branch = 0; branch < 3; ++branch) {
    save(checkpoints, 100);
    save(checkpoints, 200);
    checkpoints.begin_branch(100);
    for (const fs::path& moved : save(checkpoints, 150).set_aside)
      folders.insert(moved.parent_path());
    fs::remove_all(root() / step_name(150));
  }
  EXPECT_THAT(folders, SizeIs(3));
}

TEST_F(Directory, CallsBackWhenTheFilesAreWrittenAndNothingIsVisible) {
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  SmallState state{1};
  SavingArchive archive;
  state.visit(archive);
  int calls = 0;

  (void)checkpoints.save(archive, info_of(100), {}, [&] {
    ++calls;
    EXPECT_THAT(steps(), IsEmpty());
  });
  EXPECT_THROW((void)checkpoints.save(archive, info_of(200), {}, [] { fail<IoError>("full"); }),
               IoError);

  EXPECT_EQ(calls, 1);
  EXPECT_THAT(steps(), ElementsAre(100));
  EXPECT_THAT(names_in(root()), ElementsAre("latest", "step-00000100"));
}

TEST_F(Directory, AdoptsACheckpointOfAnotherRunWhole) {
  const TemporaryDirectory other;
  const RunLock other_lock = RunLock::acquire(other.path());
  auto theirs = CheckpointDirectory::open_for_writing(other.path(), other_lock);
  save(theirs, 700);
  const fs::path source = other.path() / "checkpoints" / step_name(700);
  const Checkpoint checkpoint = Checkpoint::open(source);
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);

  checkpoints.adopt(checkpoint);

  const Checkpoint copy = Checkpoint::open(root() / step_name(700));
  EXPECT_EQ(copy.manifest().state_hash, checkpoint.manifest().state_hash);
  EXPECT_EQ(copy.manifest().run_id, checkpoint.manifest().run_id);
  EXPECT_THAT(names_in(root()), ElementsAre("latest", "step-00000700"));

  fs::resize_file(source / kStateName, 100);
  EXPECT_THROW(checkpoints.adopt(checkpoint), CheckpointError);
  EXPECT_NO_THROW((void)Checkpoint::open(root() / step_name(700)));
}

TEST_F(Directory, IsCleanedOfOrphansWhenOpenedForWriting) {
  fs::create_directories(root() / ".tmp-123-abc");
  write_text(root() / ".tmp-123-abc" / kStateName, "half");
  write_text(root() / ".tmp-456-def", "latest, half");
  fs::create_directory(run() / "canary");
  write_text(run() / "canary" / "file", "x");
  fs::create_directory_symlink(run() / "canary", root() / ".tmp-link");

  const RunLock lock = RunLock::acquire(run());
  const auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  EXPECT_TRUE(fs::is_empty(root()));
  EXPECT_TRUE(fs::exists(run() / "canary" / "file"));
}

TEST_F(Directory, FencesOffASaveWhoseRunWasTakenOverMeanwhile) {
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  save(checkpoints, 100);
  std::optional<RunLock> new_owner;
  const FileCallWatcher watcher([&](const FileCall& call) {
    if (call.function == "mkdirat")
      new_owner = RunLock::acquire(run(), {.job_id = "9", .take_over = true});
    return 0;
  });

  const std::string message = message_of<InvalidArgument>([&] { save(checkpoints, 200); });

  EXPECT_THAT(message, HasSubstr("was taken over by host "));
  EXPECT_THAT(message, HasSubstr(", job 9, since "));
  EXPECT_THAT(message, HasSubstr(" with fencing token 2, ours is 1"));
  EXPECT_THAT(names_in(root()), ElementsAre("latest", "step-00000100"));
  EXPECT_THROW(save(checkpoints, 300), InvalidArgument);
  EXPECT_THROW(static_cast<void>(CheckpointDirectory::open_for_writing(run(), lock)),
               InvalidArgument);
}

TEST_F(Directory, OpenedForReadingRefusesToSave) {
  auto checkpoints = CheckpointDirectory::open(run());
  EXPECT_THAT(message_of<InvalidArgument>([&] { save(checkpoints, 100); }),
              HasSubstr("was opened for reading only"));
}

TEST_F(Directory, FollowsALinkOfItsOwnerOnly) {
  fs::create_directory(run() / "large-disk");
  fs::create_directory_symlink(run() / "large-disk", root());
  const RunLock lock = RunLock::acquire(run());
  auto checkpoints = CheckpointDirectory::open_for_writing(run(), lock);
  save(checkpoints, 100);
  EXPECT_TRUE(fs::exists(run() / "large-disk" / step_name(100) / kStateName));
  EXPECT_EQ(CheckpointDirectory::open(run()).newest_valid().checkpoint->manifest().step, 100);

  if (::geteuid() != 0 || ::lchown(root().c_str(), 65534, 65534) != 0)
    GTEST_SKIP() << "the second half needs root, to give a link away";
  EXPECT_THAT(message_of<InvalidArgument>(
                  [&] { static_cast<void>(CheckpointDirectory::open_for_writing(run(), lock)); }),
              HasSubstr("is a symbolic link of another user"));
}

TEST(StepName, RoundTrips) {
  EXPECT_EQ(step_name(12000), "step-00012000");
  EXPECT_EQ(step_name(1234567890), "step-1234567890");
  EXPECT_EQ(parse_step_name("step-00012000"), 12000);
  for (const char* other : {"step-12000", "step-", "step--0000001", "step-00012000x", "latest",
                            "step-99999999999999999999"})
    EXPECT_FALSE(parse_step_name(other)) << other;
}

}  // namespace
}  // namespace fathom::checkpoint
