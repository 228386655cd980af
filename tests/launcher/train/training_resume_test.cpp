// What a run goes on from, and with what changed.
#include "launcher/train/training_run.h"
#include "monitoring/history.h"
#include "tests/launcher/train/whole_run.h"
#include "tests/support/expect_error.h"

namespace fathom::launcher {
namespace {

namespace fs = std::filesystem;
using support::throws_with;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(TrainingRunTest, ForgetsTheBestOfAnotherMetric) {
  (void)train(config({"train.validate_every=1"}));

  (void)train(config({"train.validate_every=1", "train.max_steps=4", "train.best_metric=bleu"}));

  const checkpoint::Checkpoint checkpoint = checkpoint::open_checkpoint(directory_ / "run");
  checkpoint::LoadingArchive archive(checkpoint);
  TrainState state;
  state.visit(archive);
  EXPECT_EQ(state.best_step, 3) << "whatever its BLEU, it is the first: it was due at the resume";
  EXPECT_LE(state.best_value, 0) << "negated";
}

TEST_F(TrainingRunTest, IsFoundWhereItsTextsWereMoved) {
  (void)train(config());
  for (const char* name : {"train.xx", "train.yy", "valid.xx", "valid.yy"})
    fs::rename(directory_ / name, directory_ / (join("moved-", name)));

  const Trained again =
      train(config({"train.max_steps=4", "data.train=" + (directory_ / "moved-train").string(),
                    "data.valid=" + (directory_ / "moved-valid").string(),
                    "data.test=" + (directory_ / "moved-valid").string()}));

  EXPECT_EQ(again.first_step, 3);
  EXPECT_FALSE(result().contains("changes"));
}

TEST_F(TrainingRunTest, GoesOnWhereMoreIsAskedFor) {
  (void)train(config());

  const Trained again = train(config({"train.max_steps=5"}));

  EXPECT_EQ(again.first_step, 3);
  EXPECT_EQ(result().at("step"), 5);
  EXPECT_EQ(checkpoint::open_checkpoint(directory_ / "run").manifest().attempt, 2);
  EXPECT_THAT(said(), HasSubstr("resumed from step 3, "));
}

TEST_F(TrainingRunTest, GoesOnInAnotherPrecisionWhereThatIsAllowed) {
  const auto steps = [&](int last, const std::string& precision, const std::string& run) {
    return config({join("train.max_steps=", last), "train.precision=" + precision}, run);
  };
  const RunOptions allowed = {.allow_change = {"train.precision"}};
  (void)train(steps(9, "fp32", "plain"));
  (void)train(steps(3, "fp32", "run"));
  EXPECT_THROW((void)train(steps(6, "bf16", "run")), InvalidArgument);
  (void)train(steps(6, "bf16", "run"), allowed);
  (void)train(steps(7, "bf16", "run"), allowed);  // the same words once more
  (void)train(steps(9, "fp32", "run"), allowed);

  const auto changes = result().at("changes");
  EXPECT_EQ(changes.size(), 2u);
  EXPECT_EQ(
      changes[0],
      nlohmann::json({{"step", 3}, {"key", "train.precision"}, {"from", "fp32"}, {"to", "bf16"}}));
  EXPECT_EQ(changes[1].at("step"), 7);
  EXPECT_EQ(changes[1].at("to"), "fp32");
  const std::string log = said();
  EXPECT_THAT(log, HasSubstr("train.precision: fp32 up to step 3, bf16 from there on"));
  EXPECT_THAT(log, HasSubstr("train.precision: bf16 up to step 7, fp32 from there on"));
  EXPECT_NE(hashes("run"), hashes("plain"));
  EXPECT_NEAR(result().at("validation_loss"), result("plain").at("validation_loss"), 0.01);
}

TEST_F(TrainingRunTest, GoesOnAtTheSameShareOfTheEpochWithOtherBatches) {
  (void)train(config());
  const auto next = [&] {
    const checkpoint::Checkpoint checkpoint = checkpoint::open_checkpoint(directory_ / "run");
    checkpoint::LoadingArchive archive(checkpoint);
    TrainState state;
    state.visit(archive);
    return state.next;
  };
  ASSERT_EQ(next().epoch, 0);
  ASSERT_EQ(next().batch, 3);
  const RunOptions allowed = {.allow_change = {"batch.tokens"}};

  // Twice as large, so about half as many: three batches of the old ones are one or two of these.
  (void)train(config({"train.max_steps=4", "batch.tokens=400"}), allowed);

  EXPECT_EQ(next().epoch, 0);
  EXPECT_EQ(next().batch, 2);
}

TEST_F(TrainingRunTest, GoesOnWithAnotherValidationSetWhereThatIsAllowed) {
  (void)train(config());
  for (const char* language : {".xx", ".yy"})
    support::write_text(directory_ / join("other", language),
                        data::testing::sentences(20, language[1] == 'x'));
  const std::vector<std::string> change = {"train.max_steps=5",
                                           "data.valid=" + (directory_ / "other").string()};
  EXPECT_TRUE(
      throws_with<DataError>("--allow-change data.valid", [&] { (void)train(config(change)); }));

  const Trained trained = train(config(change), {.allow_change = {"data.valid"}});

  EXPECT_EQ(trained.first_step, 3);
  EXPECT_EQ(result().at("changes")[0].at("key"), "data.valid");
  EXPECT_EQ(train(config(change)).first_step, -1);  // complete, with the texts that it has now
}

TEST_F(TrainingRunTest, TrainsTheSameBitsOnTwoRanks) {
  (void)train(config({}, "one"));
  (void)train(config({"dist.shard_optimizer=true"}, "two"), {}, 2);

  EXPECT_EQ(hashes("two"), hashes("one"));
}

TEST_F(TrainingRunTest, SetsAsideWhatIsLaterThanTheCheckpointThatIsChosen) {
  const Config saving = config({"checkpoint.every_steps=1", "checkpoint.keep_last=5"});
  (void)train(saving);
  const std::map<std::string, std::string> whole = hashes("run");
  const fs::path checkpoints = directory_ / "run" / "checkpoints";
  const RunOptions options = {.resume = checkpoints / "step-00000001"};
  const auto lines = [&] {
    return monitoring::read_effective(directory_ / "run" / "metrics.jsonl").size();
  };

  dist::run_ranks(1, [&](dist::Communicator& group) {
    TrainingRun run(saving, options, group);
    run.open();
    EXPECT_EQ(run.loop().state().step, 1);
  });
  // It was killed before its first save: nothing has changed.
  EXPECT_TRUE(fs::exists(checkpoints / "step-00000003"));
  EXPECT_EQ(lines(), 3u);

  EXPECT_EQ(train(saving, options).first_step, 1);
  EXPECT_EQ(hashes("run"), whole);
  EXPECT_EQ(lines(), 3u);
  std::vector<std::string> names = support::names_in(checkpoints);
  ASSERT_THAT(names.front(), HasSubstr("abandoned-"));
  EXPECT_THAT(support::names_in(checkpoints / names.front()),
              ElementsAre("step-00000002", "step-00000003"));

  // The same command once more, with more to do: from where the branch is.
  EXPECT_EQ(train(config({"train.max_steps=5"}), options).first_step, 3);
}

TEST_F(TrainingRunTest, GoesOnInAnotherDirectoryFromACopyOfTheCheckpoint) {
  (void)train(config());
  const RunOptions options = {.resume = directory_ / "run"};

  EXPECT_EQ(train(config({"train.max_steps=3"}, "copy"), options).first_step, 3);
  EXPECT_EQ(result("copy"), result());
  EXPECT_EQ(hashes("copy"), hashes("run")) << "of a run that had nothing left to do";

  EXPECT_EQ(train(config({"train.max_steps=5"}, "copy"), options).first_step, 3);
  EXPECT_EQ(train(config({"train.max_steps=6"}, "copy"), options).first_step, 5);
}

TEST_F(TrainingRunTest, GoesBackAlsoWhereTheRunWouldBeCompleteThere) {
  const Config saving = config({"checkpoint.every_steps=1", "checkpoint.keep_last=9"});
  (void)train(config({"checkpoint.every_steps=1", "checkpoint.keep_last=9", "train.max_steps=5"}));
  const fs::path checkpoints = directory_ / "run" / "checkpoints";

  (void)train(saving, {.resume = checkpoints / "step-00000003"});

  EXPECT_EQ(result().at("step"), 3);
  EXPECT_FALSE(fs::exists(checkpoints / "step-00000005"));
  EXPECT_EQ(checkpoint::open_checkpoint(directory_ / "run").manifest().step, 3);
}

TEST_F(TrainingRunTest, DoesNotGoOnWithOtherTexts) {
  (void)train(config());
  support::write_text(directory_ / "train.yy", data::testing::sentences(60, true));

  EXPECT_TRUE(throws_with<DataError>("the text or the tokenizer has changed",
                                     [&] { (void)train(config({"train.max_steps=5"})); }));
}

}  // namespace
}  // namespace fathom::launcher
