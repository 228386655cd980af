#include "launcher/train/resume.h"

#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "launcher/config/load.h"
#include "launcher/config/show.h"
#include "tests/dist/rank_threads.h"
#include "tests/launcher/train/written_state.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

using support::throws_with;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ResumeTest : public ::testing::Test {
 protected:
  ResumeTest() {
    config_ = parse_config("data: {train: texts}", "c.yaml", "small",
                           {"batch.shards=8", "run.directory=" + (directory_ / "run").string()});
  }

  // A checkpoint as a run of this config leaves it.
  void save(int64_t step, const checkpoint::Retention& retention = {}) {
    RunDirectory run = open_run_directory(config_, 0, log_);
    run.new_files->keep();
    save(run, step, retention);
  }
  void save(RunDirectory& run, int64_t step, const checkpoint::Retention& retention) const {
    TrainState state;
    state.step = step;
    checkpoint::SavingArchive archive;
    state.visit(archive);
    std::vector<float> weights(1000, float(step));
    archive.array("model/weight", std::vector<int64_t>{1000}, std::span(weights));
    (void)run.checkpoints->save(
        archive,
        save_info(
            step,
            nlohmann::json{{"config", to_yaml(config_)}, {"changes", earlier_changes_}}.dump()),
        retention);
  }
  [[nodiscard]] std::filesystem::path step(int64_t number) const {
    return directory_ / "run" / "checkpoints" / checkpoint::step_name(number);
  }
  void damage(int64_t number) const {
    std::filesystem::resize_file(step(number) / "state.h5", 100);
  }
  [[nodiscard]] std::vector<std::string> steps() const {
    std::vector<std::string> names = support::names_in(directory_ / "run" / "checkpoints");
    std::erase_if(names, [](const std::string& name) { return !name.starts_with("step-"); });
    return names;
  }

  // On one rank, whose directory is closed again.
  Resume decide(const std::string& mode, const std::vector<std::string>& allow_change = {}) {
    Resume resume;
    dist::run_ranks(1, [&](dist::Communicator& group) {
      RunDirectory run = open_run_directory(config_, 0, log_);
      Config config = config_;
      RunOptions options = options_;
      options.resume = mode;
      options.allow_change = allow_change;
      resume = decide_resume(config, options, run, group, log_);
      run.new_files->keep();
      shards_ = config.batch.shards;
    });
    return resume;
  }

  support::TemporaryDirectory directory_;
  Config config_;
  nlohmann::json earlier_changes_ = nlohmann::json::array();
  RunOptions options_;
  int64_t shards_ = 0;  // what the last decide() settled on
  std::ostringstream said_;
  monitoring::Log log_{{}, said_};
};

TEST_F(ResumeTest, ThatIsEmptyBeginsARunOfItsOwn) {
  for (const char* mode : {"auto", "never"}) {
    const Resume resume = decide(mode);

    EXPECT_FALSE(resume.resumes);
    EXPECT_FALSE(resume.checkpoint.has_value());
    EXPECT_THAT(resume.run_id, SizeIs(16));
    EXPECT_EQ(resume.attempt, 1);
  }
  EXPECT_NE(decide("auto").run_id, decide("auto").run_id);
}

TEST_F(ResumeTest, GoesOnFromTheNewestCheckpointOnEveryRank) {
  save(10);
  save(20);
  for (const char* mode : {"auto", "require"})
    dist::run_ranks(2, [&](dist::Communicator& group) {
      RunDirectory run = open_run_directory(config_, group.rank(), log_);

      Config config = config_;
      const Resume resume = decide_resume(config, {.resume = mode}, run, group, log_);

      EXPECT_TRUE(resume.resumes);
      EXPECT_EQ(resume.run_id, "earlier");
      EXPECT_TRUE(resume.before.has_value());
      EXPECT_EQ(resume.attempt, 5);
      EXPECT_EQ(resume.rejected, 0);
      ASSERT_EQ(resume.checkpoint.has_value(), group.rank() == 0);
      if (resume.checkpoint) {
        EXPECT_EQ(resume.checkpoint->manifest().step, 20);
      }
    });
}

TEST_F(ResumeTest, GivesEveryRankTheNewRunsIdentity) {
  std::vector<std::string> ids(3);
  dist::run_ranks(3, [&](dist::Communicator& group) {
    RunDirectory run = open_run_directory(config_, group.rank(), log_);
    Config config = config_;
    ids[size_t(group.rank())] = decide_resume(config, {.resume = "auto"}, run, group, log_).run_id;
  });

  EXPECT_THAT(ids[0], SizeIs(16));
  EXPECT_EQ(ids[1], ids[0]);
  EXPECT_EQ(ids[2], ids[0]);
}

TEST_F(ResumeTest, IsRefusedByNeverWhereItHoldsARun) {
  save(10);
  EXPECT_TRUE(throws_with<InvalidArgument>("--resume never: ", [&] { (void)decide("never"); }));

  std::filesystem::remove_all(step(10));
  EXPECT_NO_THROW((void)decide("never"));
  support::write_text(directory_ / "run" / "metrics.jsonl", "{}\n");
  EXPECT_TRUE(throws_with<InvalidArgument>("already holds a run", [&] { (void)decide("never"); }));
}

TEST_F(ResumeTest, WithoutACheckpointIsRefusedByRequire) {
  EXPECT_TRUE(throws_with<CheckpointError>("--resume require, but there is no checkpoint",
                                           [&] { (void)decide("require"); }));
}

TEST_F(ResumeTest, SaysThatARunLeftNoCheckpoint) {
  (void)decide("auto");
  EXPECT_THAT(said_.str(), IsEmpty());

  support::write_text(directory_ / "run" / "metrics.jsonl", "{}\n");
  EXPECT_FALSE(decide("auto").resumes);

  EXPECT_THAT(said_.str(),
              HasSubstr("a run was started here but left no checkpoint; starting anew"));
}

TEST_F(ResumeTest, GoesOnFromAnOlderCheckpointThatIsChosen) {
  for (const int64_t number : {10, 20, 30}) save(number);

  const Resume resume = decide(step(20));

  EXPECT_EQ(resume.checkpoint->manifest().step, 20);
  EXPECT_TRUE(resume.is_branch);
  EXPECT_FALSE(resume.adopts);
  EXPECT_EQ(resume.start.resume, step(20));
  EXPECT_FALSE(resume.start.is_done);
  EXPECT_THAT(steps(), ElementsAre("step-00000010", "step-00000020", "step-00000030"));
  EXPECT_TRUE(throws_with<CheckpointError>("does not exist", [&] { (void)decide("/gone"); }));
}

TEST_F(ResumeTest, GoesOnFromACopyOfItsOwnCheckpointElsewhere) {
  save(10);
  std::filesystem::create_directory(directory_ / "backup");
  std::filesystem::copy(step(10), directory_ / "backup" / checkpoint::step_name(10),
                        std::filesystem::copy_options::recursive);
  save(20);

  const Resume resume = decide(directory_ / "backup" / checkpoint::step_name(10));

  EXPECT_TRUE(resume.is_branch);
  EXPECT_FALSE(resume.adopts);
}

// Of a copy of the run that went further, it is another run's.
TEST_F(ResumeTest, TakesNoCheckpointThatACopyOfItHasMadeSince) {
  save(10);
  std::filesystem::create_directory(directory_ / "copy");
  save(20);
  std::filesystem::rename(step(20), directory_ / "copy" / checkpoint::step_name(20));

  EXPECT_TRUE(throws_with<InvalidArgument>("is of another run or branch, but", [&] {
    (void)decide(directory_ / "copy" / checkpoint::step_name(20));
  }));
}

TEST_F(ResumeTest, TakesAnotherRunsCheckpointOnlyIntoAnEmptyDirectory) {
  save(10);
  const std::filesystem::path source = step(10);
  config_.run.directory = directory_ / "other";

  const Resume resume = decide(source);
  EXPECT_TRUE(resume.adopts);
  EXPECT_FALSE(resume.is_branch);
  EXPECT_EQ(resume.checkpoint->manifest().step, 10);

  support::write_text(directory_ / "other" / "metrics.jsonl", "{}\n");
  EXPECT_TRUE(throws_with<InvalidArgument>("is of another run or branch, but",
                                           [&] { (void)decide(source); }));
}

TEST_F(ResumeTest, OptionsActOnce) {
  for (const int64_t number : {10, 20, 30}) save(number);
  StartRecord record = decide(step(20)).start;
  write_start(directory_ / "run", record);
  EXPECT_TRUE(decide(step(20)).is_branch) << "nothing of the branch was saved";
  record.is_done = true;
  write_start(directory_ / "run", record);

  const Resume again = decide(step(20));

  EXPECT_FALSE(again.is_branch);
  EXPECT_EQ(again.checkpoint->manifest().step, 30);
  EXPECT_EQ(again.start, record) << "it stays on record";
  EXPECT_THAT(said_.str(),
              HasSubstr("done by an earlier start of this command; going on from there"));
  EXPECT_TRUE(decide(step(10)).is_branch) << "another path is another branch";
  options_.command = "other words";
  EXPECT_TRUE(decide(step(20)).is_branch);
}

// Neither a start that was refused nor one that was killed has done what it was asked for.
TEST_F(ResumeTest, ForgetsAnOptionThatALaterStartDoesNotGoOnWith) {
  for (const int64_t number : {10, 20}) save(number);
  write_start(directory_ / "run", decide(step(10)).start);

  const Resume plain = decide("auto");
  EXPECT_EQ(plain.checkpoint->manifest().step, 20);
  EXPECT_EQ(plain.start.resume, "");

  config_.run.directory = directory_ / "new";
  std::filesystem::create_directory(directory_ / "new");
  write_start(directory_ / "new", {.init_from = "/donor"});
  EXPECT_TRUE(decide("auto").start.is_empty());
}

TEST_F(ResumeTest, TakesNothingOfABranchThatItHasLeft) {
  for (const int64_t number : {10, 20}) save(number);
  const auto abandoned = directory_ / "run" / "checkpoints" / "abandoned-x";
  std::filesystem::create_directory(abandoned);
  std::filesystem::rename(step(20), abandoned / checkpoint::step_name(20));

  EXPECT_TRUE(throws_with<InvalidArgument>("is of another run or branch, but", [&] {
    (void)decide(abandoned / checkpoint::step_name(20));
  }));
  EXPECT_TRUE(decide(step(10)).is_branch);
}

TEST_F(ResumeTest, OverwritesARunOnce) {
  options_.overwrite = true;
  EXPECT_FALSE(decide("auto").replaces) << "there is none yet";
  save(10);
  const Resume resume = decide("auto");
  EXPECT_TRUE(resume.replaces);
  EXPECT_FALSE(resume.resumes);
  EXPECT_TRUE(resume.start.overwrites);
  EXPECT_TRUE(throws_with<InvalidArgument>("does not go with --resume require",
                                           [&] { (void)decide("require"); }));

  write_start(directory_ / "run", resume.start);
  const Resume again = decide("auto");
  EXPECT_FALSE(again.replaces);
  EXPECT_EQ(again.checkpoint->manifest().step, 10);
  options_.command = "other words";
  EXPECT_TRUE(decide("auto").replaces);
  options_.command = "";
  std::filesystem::remove_all(step(10));
  support::write_text(directory_ / "run" / "metrics.jsonl", "{}\n");
  support::write_text(directory_ / "run" / "events.jsonl", "{\"event\":\"saved\"}\n");
  EXPECT_TRUE(decide("auto").replaces) << "there is nothing to go on from";
}

TEST_F(ResumeTest, BeginsFromOtherWeightsOnce) {
  options_.init_from = directory_ / "teacher";
  const Resume first = decide("auto");
  EXPECT_FALSE(first.resumes);
  EXPECT_EQ(first.start.init_from, directory_ / "teacher");
  save(10);
  EXPECT_TRUE(throws_with<InvalidArgument>("already holds a run, which did not begin with these",
                                           [&] { (void)decide("auto"); }));

  write_start(directory_ / "run", first.start);
  EXPECT_TRUE(decide("auto").resumes);
  EXPECT_TRUE(
      throws_with<InvalidArgument>("does not go with --resume ", [&] { (void)decide(step(10)); }));
  options_ = {};
  const StartRecord branch = decide(step(10)).start;
  EXPECT_EQ(branch.init_from, directory_ / "teacher") << "what began the run stays on record";
}

TEST_F(ResumeTest, PassesADamagedCheckpointOver) {
  for (const int64_t number : {10, 20, 30}) save(number);
  damage(30);
  dist::run_ranks(1, [&](dist::Communicator& group) {
    RunDirectory run = open_run_directory(config_, 0, log_);

    Config config = config_;
    const Resume resume = decide_resume(config, {.resume = "auto"}, run, group, log_);

    EXPECT_EQ(resume.checkpoint->manifest().step, 20);
    EXPECT_EQ(resume.rejected, 1);
    EXPECT_THAT(said_.str(), HasSubstr(step(30).string()));
    save(run, 40, {.keep_last = 2, .keep_best = 0});
    EXPECT_THAT(steps(), ElementsAre("step-00000020", "step-00000030", "step-00000040"))
        << "the damaged one does not count as one of the two";
  });
}

TEST_F(ResumeTest, WithDamagedCheckpointsAloneIsRefused) {
  save(10);
  damage(10);

  EXPECT_TRUE(throws_with<CheckpointError>("none of 1 checkpoints is valid",
                                           [&] { (void)decide("auto"); }));
}

TEST_F(ResumeTest, RefusesAConfigThatAResumeMayNotChange) {
  save(10);

  config_.train.max_steps += 5;
  EXPECT_TRUE(decide("auto").resumes);
  config_.model.width *= 2;
  EXPECT_TRUE(throws_with<InvalidArgument>("model.width", [&] { (void)decide("auto"); }));
}

TEST_F(ResumeTest, KeepsTheShardsThatTheRunBeganWith) {
  config_.batch.tokens = 40'000;
  config_.batch.micro_tokens = 4000;
  config_.batch.shards = 0;
  (void)decide("auto");
  ASSERT_EQ(shards_, 16) << "the power of two that is at least 10";
  config_.batch.shards = 16;
  save(10);
  config_.batch.shards = 0;

  config_.batch.micro_tokens = 8000;
  EXPECT_TRUE(decide("auto").resumes);
  EXPECT_EQ(shards_, 16);
  config_.batch.micro_tokens = 2000;
  EXPECT_TRUE(throws_with<InvalidArgument>(
      "batch.micro_tokens: got 2000, but a shard of batch.tokens 40000 in the run's 16 shards has "
      "more; raise batch.micro_tokens to 2500, or batch.shards to 20",
      [&] { (void)decide("auto"); }));
  config_.batch.shards = 32;
  EXPECT_TRUE(decide("auto", {"batch.shards"}).resumes);
  EXPECT_EQ(shards_, 32);
}

TEST_F(ResumeTest, WithoutTheCheckpointsThatItHasSavedIsRefused) {
  save(10);
  support::write_text(directory_ / "run" / "events.jsonl",
                      "{\"event\":\"started\"}\n{\"event\":\"saved\",\"step\":10}\n");
  std::filesystem::remove_all(step(10));

  EXPECT_TRUE(throws_with<CheckpointError>("events.jsonl tells of checkpoints, but there is none",
                                           [&] { (void)decide("auto"); }));
}

TEST_F(ResumeTest, TakesAChangeThatIsAskedForAndKeepsTheEarlierOnes) {
  earlier_changes_ = {{{"step", 3}, {"key", "model.dropout"}, {"from", "0.1"}, {"to", "0.3"}}};
  save(10);
  const Config before = config_;
  config_.run.seed = 7;
  EXPECT_TRUE(
      throws_with<InvalidArgument>("--allow-change run.seed", [&] { (void)decide("auto"); }));

  const Resume resume = decide("auto", {"run.seed"});

  ASSERT_TRUE(resume.before.has_value());
  EXPECT_THAT(differences(*resume.before, before), IsEmpty());
  ASSERT_THAT(resume.changes, SizeIs(2));
  EXPECT_EQ(resume.changes[0].step, 3);
  EXPECT_EQ(resume.changes[0].key, "model.dropout");
  EXPECT_EQ(resume.changes[0].old_value, "0.1");
  EXPECT_EQ(resume.changes[0].new_value, "0.3");
  EXPECT_EQ(resume.changes[1].step, 10);
  EXPECT_EQ(resume.changes[1].key, "run.seed");
  EXPECT_EQ(resume.changes[1].old_value, "1");
  EXPECT_EQ(resume.changes[1].new_value, "7");
}

TEST_F(ResumeTest, RefusesACheckpointThatCarriesNoConfig) {
  RunDirectory run = open_run_directory(config_, 0, log_);
  TrainState state;
  checkpoint::SavingArchive archive;
  state.visit(archive);
  (void)run.checkpoints->save(archive, save_info(1), {});
  run = {};

  EXPECT_TRUE(throws_with<CheckpointError>("carries no config", [&] { (void)decide("auto"); }));
}

}  // namespace
}  // namespace fathom::launcher
