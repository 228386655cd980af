#include "launcher/train/run_directory.h"

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

class RunDirectoryTest : public ::testing::Test {
 protected:
  RunDirectoryTest() {
    config_ = parse_config("data: {train: texts}", "c.yaml", "small",
                           {"batch.shards=8", "run.directory=" + (directory_ / "run").string()});
  }

  // A checkpoint as a run of this config leaves it.
  void save(int64_t step, const checkpoint::Retention& retention = {}) {
    RunDirectory run = open_run_directory(config_, 0, log_);
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
      resume =
          decide_resume(config, {.resume = mode, .allow_change = allow_change}, run, group, log_);
      shards_ = config.batch.shards;
    });
    return resume;
  }

  support::TemporaryDirectory directory_;
  Config config_;
  nlohmann::json earlier_changes_ = nlohmann::json::array();
  int64_t shards_ = 0;  // what the last decide() settled on
  std::ostringstream said_;
  monitoring::Log log_{{}, said_};
};

TEST_F(RunDirectoryTest, IsMadeAndLockedByTheFirstRankAlone) {
  const RunDirectory other = open_run_directory(config_, 1, log_);
  EXPECT_FALSE(other.lock.has_value());
  EXPECT_FALSE(other.checkpoints.has_value());
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run"));

  const RunDirectory first = open_run_directory(config_, 0, log_);
  EXPECT_TRUE(first.lock->is_owner());
  EXPECT_TRUE(std::filesystem::is_directory(first.checkpoints->path()));
  EXPECT_THROW((void)open_run_directory(config_, 0, log_), InvalidArgument);
}

TEST_F(RunDirectoryTest, ThatIsEmptyBeginsARunOfItsOwn) {
  for (const char* mode : {"auto", "never"}) {
    const Resume resume = decide(mode);

    EXPECT_FALSE(resume.resumes);
    EXPECT_FALSE(resume.checkpoint.has_value());
    EXPECT_THAT(resume.run_id, SizeIs(16));
    EXPECT_EQ(resume.attempt, 1);
  }
  EXPECT_NE(decide("auto").run_id, decide("auto").run_id);
}

TEST_F(RunDirectoryTest, GoesOnFromTheNewestCheckpointOnEveryRank) {
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

TEST_F(RunDirectoryTest, GivesEveryRankTheNewRunsIdentity) {
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

TEST_F(RunDirectoryTest, IsRefusedByNeverWhereItHoldsARun) {
  save(10);
  EXPECT_TRUE(throws_with<InvalidArgument>("--resume never: ", [&] { (void)decide("never"); }));

  std::filesystem::remove_all(step(10));
  EXPECT_NO_THROW((void)decide("never"));
  support::write_text(directory_ / "run" / "metrics.jsonl", "{}\n");
  EXPECT_TRUE(throws_with<InvalidArgument>("already holds a run", [&] { (void)decide("never"); }));
}

TEST_F(RunDirectoryTest, WithoutACheckpointIsRefusedByRequire) {
  EXPECT_TRUE(throws_with<CheckpointError>("--resume require, but there is no checkpoint",
                                           [&] { (void)decide("require"); }));
}

TEST_F(RunDirectoryTest, SaysThatARunLeftNoCheckpoint) {
  (void)decide("auto");
  EXPECT_THAT(said_.str(), IsEmpty());

  support::write_text(directory_ / "run" / "metrics.jsonl", "{}\n");
  EXPECT_FALSE(decide("auto").resumes);

  EXPECT_THAT(said_.str(),
              HasSubstr("a run was started here but left no checkpoint; starting anew"));
}

TEST_F(RunDirectoryTest, GoesOnFromAnOlderCheckpointThatIsChosen) {
  for (const int64_t number : {10, 20, 30}) save(number);
  dist::run_ranks(1, [&](dist::Communicator& group) {
    RunDirectory run = open_run_directory(config_, 0, log_);
    Config config = config_;
    const Resume resume = decide_resume(config, {.resume = step(20)}, run, group, log_);
    EXPECT_EQ(resume.checkpoint->manifest().step, 20);
    EXPECT_THAT(steps(), ElementsAre("step-00000010", "step-00000020", "step-00000030"));

    discard_later(resume, run);

    EXPECT_THAT(steps(), ElementsAre("step-00000010", "step-00000020"));
  });
  EXPECT_TRUE(throws_with<CheckpointError>("does not exist", [&] { (void)decide("/gone"); }));
}

TEST_F(RunDirectoryTest, PassesADamagedCheckpointOver) {
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

TEST_F(RunDirectoryTest, WithDamagedCheckpointsAloneIsRefused) {
  save(10);
  damage(10);

  EXPECT_TRUE(throws_with<CheckpointError>("none of 1 checkpoints is valid",
                                           [&] { (void)decide("auto"); }));
}

TEST_F(RunDirectoryTest, RefusesAConfigThatAResumeMayNotChange) {
  save(10);

  config_.train.max_steps += 5;
  EXPECT_TRUE(decide("auto").resumes);
  config_.model.width *= 2;
  EXPECT_TRUE(throws_with<InvalidArgument>("model.width", [&] { (void)decide("auto"); }));
}

TEST_F(RunDirectoryTest, KeepsTheShardsThatTheRunBeganWith) {
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

TEST_F(RunDirectoryTest, WithoutTheCheckpointsThatItHasSavedIsRefused) {
  save(10);
  support::write_text(directory_ / "run" / "events.jsonl",
                      "{\"event\":\"started\"}\n{\"event\":\"saved\",\"step\":10}\n");
  std::filesystem::remove_all(step(10));

  EXPECT_TRUE(throws_with<CheckpointError>("events.jsonl tells of checkpoints, but there is none",
                                           [&] { (void)decide("auto"); }));
}

TEST_F(RunDirectoryTest, TakesAChangeThatIsAskedForAndKeepsTheEarlierOnes) {
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

TEST_F(RunDirectoryTest, RefusesACheckpointThatCarriesNoConfig) {
  RunDirectory run = open_run_directory(config_, 0, log_);
  TrainState state;
  checkpoint::SavingArchive archive;
  state.visit(archive);
  (void)run.checkpoints->save(archive, save_info(1), {});
  run = {};

  EXPECT_TRUE(throws_with<CheckpointError>("carries no config", [&] { (void)decide("auto"); }));
}

TEST_F(RunDirectoryTest, SaysWithWhichConfigItsStepsAreMade) {
  (void)decide("auto");

  write_config(config_);

  EXPECT_EQ(support::read_text(directory_ / "run" / "config.yaml"), to_yaml(config_));
}

TEST_F(RunDirectoryTest, KnowsHowTheLastRunEnded) {
  const auto written = [&](const std::string& text) {
    support::write_text(directory_ / "run" / "result.json", text);
    const LastResult result = last_result(config_);
    return join(result.status, " ", result.step);
  };
  EXPECT_EQ(last_result(config_).status, "");
  std::filesystem::create_directories(directory_ / "run");
  EXPECT_EQ(last_result(config_).status, "");
  EXPECT_EQ(written(R"({"status": "failed", "step": 3})"), "failed 3");
  for (const char* damaged : {"{\"sta", "", "[]", R"({"status": 5, "step": "x"})", "\xff"})
    EXPECT_EQ(written(damaged), " 0") << damaged;
}

}  // namespace
}  // namespace fathom::launcher
