// How a run ends, and what a later start makes of it.
#include "launcher/train/training_run.h"
#include "tests/launcher/train/whole_run.h"

namespace fathom::launcher {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST_F(TrainingRunTest, TrainsAndSaysHowItEnded) {
  const Trained trained = train(config());

  EXPECT_EQ(trained.result.kind, StopKind::kCompleted);
  EXPECT_EQ(trained.first_step, 0);
  EXPECT_EQ(result().at("status"), "completed");
  EXPECT_EQ(result().at("step"), 3);
  EXPECT_TRUE(result().contains("validation_loss"));
  EXPECT_THAT(support::read_text(directory_ / "run" / "config.yaml"), HasSubstr("max_steps: 3"));
  EXPECT_TRUE(fs::exists(directory_ / "run" / "tokenizer.model"));
  EXPECT_TRUE(fs::exists(directory_ / "run" / "metrics.jsonl"));
  EXPECT_FALSE(fs::exists(directory_ / "run" / "trace.json"));
  const checkpoint::Manifest manifest = checkpoint::open_checkpoint(directory_ / "run").manifest();
  EXPECT_EQ(manifest.step, 3);
  EXPECT_EQ(manifest.attempt, 1);
  EXPECT_THAT(manifest.provenance, HasSubstr("\"numerics\""));
  EXPECT_THAT(said(), EndsWith("fathom train: completed at step 3: reached train.max_steps 3\n"));
}

TEST_F(TrainingRunTest, ThatIsCompleteHasNothingLeftToDo) {
  (void)train(config());

  const Trained again = train(config());

  EXPECT_EQ(again.first_step, -1);
  EXPECT_EQ(again.result.kind, StopKind::kCompleted);
  EXPECT_EQ(again.result.reason, "reached train.max_steps 3");
  EXPECT_THAT(said(), HasSubstr("already complete at step 3; raise train.max_steps"));
}

TEST_F(TrainingRunTest, MakesUpForAnEndThatWasCutOff) {
  const std::vector<std::string> fails = {"verdict.after=1", "train.validate_every=0",
                                          "optimizer.learning_rate=1e-9",
                                          "optimizer.warmup_start=0"};
  for (const auto& [run, keys] :
       {std::pair("good", std::vector<std::string>{}),
        std::pair("scheduled", std::vector<std::string>{"train.max_steps=4"}),
        std::pair("bad", fails)}) {
    const Trained whole = train(config(keys, run));
    const nlohmann::json before = result(run);
    fs::remove(directory_ / run / "result.json");

    const Trained again = train(config(keys, run));

    EXPECT_EQ(again.first_step, before.at("step"));
    EXPECT_EQ(again.result.kind, whole.result.kind);
    EXPECT_EQ(again.result.reason, whole.result.reason);
    EXPECT_EQ(result(run), before);
  }
}

// By a kill after the last save, before what a validation found was written, and before the rest.
TEST_F(TrainingRunTest, MakesUpForAValidationThatWasCutOff) {
  const Config scheduled = config({"train.max_steps=4", "train.validate_every=2"});
  const Trained whole = train(scheduled);
  const nlohmann::json before = result();
  const fs::path validation =
      directory_ / "run" / "checkpoints" / checkpoint::step_name(4) / checkpoint::kValidationName;
  const std::string found = support::read_text(validation);
  const auto count = [&] {
    const std::string events = support::read_text(directory_ / "run" / "events.jsonl");
    int64_t n = 0;
    for (size_t at = events.find("\"validated\""); at != std::string::npos;
         at = events.find("\"validated\"", at + 1))
      ++n;
    return n;
  };
  for (const int ranks : {1, 2}) {
    const int64_t validations = count();
    fs::remove(directory_ / "run" / "result.json");
    (void)train(scheduled, {}, ranks);
    EXPECT_EQ(count(), validations) << "it is known";
    EXPECT_EQ(result(), before);
    fs::remove(directory_ / "run" / "result.json");
    fs::remove(validation);
    const Trained again = train(scheduled, {}, ranks);
    EXPECT_EQ(count(), validations + 1);
    EXPECT_EQ(again.result.reason, whole.result.reason);
    EXPECT_EQ(result(), before);
    EXPECT_EQ(support::read_text(validation), found);
  }
}

TEST_F(TrainingRunTest, EndsWhereFewerStepsAreAskedFor) {
  (void)train(config());

  const Trained shorter = train(config({"train.max_steps=2"}));

  EXPECT_EQ(shorter.result.reason, "reached train.max_steps 2");
  EXPECT_EQ(result().at("status"), "completed");
  EXPECT_EQ(result().at("step"), 3);
}

TEST_F(TrainingRunTest, GoesOnWhereMorePatienceIsAskedFor) {
  const auto patient = [&](int patience) {
    return config({join("train.patience=", patience), "train.validate_every=1", "train.max_steps=6",
                   "optimizer.learning_rate=1e-30", "optimizer.warmup_start=0"});
  };
  EXPECT_THAT(train(patient(1)).result.reason, HasSubstr("(train.patience); best at step 1"));
  ASSERT_EQ(result().at("step"), 2);

  const Trained again = train(patient(3));

  EXPECT_EQ(again.first_step, 2);
  EXPECT_EQ(result().at("step"), 4);
}

TEST_F(TrainingRunTest, ThatHasFailedStaysFailed) {
  const Config failing =
      config({"verdict.after=1", "optimizer.learning_rate=1e-9", "optimizer.warmup_start=0"});

  const Trained first = train(failing);
  const Trained again = train(failing);

  EXPECT_EQ(first.result.kind, StopKind::kFailed);
  EXPECT_EQ(result().at("status"), "failed");
  EXPECT_EQ(again.first_step, -1);
  EXPECT_EQ(again.result.kind, StopKind::kFailed);
  EXPECT_EQ(again.result.reason, first.result.reason);
  EXPECT_THAT(said(), EndsWith("fathom train: failed at step 2: " + first.result.reason + "\n"));
}

TEST_F(TrainingRunTest, ThatHasFailedGoesOnAsItsReasonSays) {
  const auto stuck = [&](const std::string& verdict, const std::string& run) {
    return config(
        {verdict, "optimizer.learning_rate=1e-9", "optimizer.warmup_start=0", "train.max_steps=4"},
        run);
  };
  for (const std::string remedy : {"verdict.after=1000", "verdict.action=report"}) {
    const std::string run = remedy.substr(8, 3);
    ASSERT_EQ(train(stuck("verdict.after=1", run)).result.kind, StopKind::kFailed);

    const Trained again = train(stuck(remedy, run));

    EXPECT_EQ(again.first_step, 2);
    EXPECT_EQ(again.result.kind, StopKind::kCompleted);
    EXPECT_EQ(result(run).at("status"), "completed");
  }
}

TEST_F(TrainingRunTest, IsNotJudgedInAFirstTrial) {
  Config first = config({"optimizer.learning_rate=1e-9", "optimizer.warmup_start=0"});
  first.verdict = {};

  EXPECT_EQ(train(first).result.kind, StopKind::kCompleted);
}

TEST_F(TrainingRunTest, SaysWhichErrorEndedIt) {
  dist::run_ranks(1, [&](dist::Communicator& group) {
    TrainingRun run(config(), {}, group);
    run.open();

    run.abandon("stopped", "the disk is full");
  });

  EXPECT_EQ(result().at("status"), "stopped");
  EXPECT_EQ(result().at("reason"), "the disk is full");
}

TEST_F(TrainingRunTest, IsSteeredByBleuWhereTheConfigSaysSo) {
  (void)train(config({"train.best_metric=bleu", "train.max_steps=2"}));

  const checkpoint::Checkpoint checkpoint = checkpoint::open_checkpoint(directory_ / "run");
  const auto found = checkpoint::read_validation(checkpoint.path(), checkpoint.manifest());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->metric->name, "validation_bleu");
}

}  // namespace
}  // namespace fathom::launcher
