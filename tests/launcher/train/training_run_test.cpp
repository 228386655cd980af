// How a run begins: anew, with other weights, over another, or not at all.
#include "launcher/train/training_run.h"

#include "monitoring/exporter.h"
#include "tests/launcher/train/whole_run.h"
#include "tests/support/expect_error.h"

namespace fathom::launcher {
namespace {

namespace fs = std::filesystem;
using support::throws_with;
using ::testing::HasSubstr;

TEST_F(TrainingRunTest, MovesTheRunAsideThatIsOverwritten) {
  (void)train(config());
  const RunOptions options = {.overwrite = true};

  EXPECT_EQ(train(config({"train.max_steps=2"}), options).first_step, 0);
  EXPECT_EQ(result().at("step"), 2);
  EXPECT_EQ(train(config({"train.max_steps=4"}), options).first_step, 2) << "it acts once";

  std::vector<std::string> replaced;
  for (const std::string& name : support::names_in(directory_.path()))
    if (name.starts_with("run.replaced-")) replaced.push_back(name);
  ASSERT_EQ(replaced.size(), 1u);
  EXPECT_EQ(result(replaced[0]).at("step"), 3);
}

TEST_F(TrainingRunTest, LeavesTheRunWhereAStartThatWouldOverwriteItIsRefused) {
  (void)train(config());

  EXPECT_THROW((void)train(config({"data.train=/none"}), {.overwrite = true}), Error);

  EXPECT_EQ(result().at("step"), 3);
}

TEST_F(TrainingRunTest, OverwritesTheRunInWhichItWorks) {
  (void)train(config());
  const fs::path before = fs::current_path();
  fs::current_path(directory_ / "run");
  Config here = config({"train.max_steps=2"});
  here.run.directory = ".";

  (void)train(here, {.overwrite = true});

  fs::current_path(before);
  EXPECT_EQ(result().at("step"), 2);
  int replaced = 0;
  for (const std::string& name : support::names_in(directory_.path()))
    if (name.starts_with("run.replaced-")) {
      ++replaced;
      EXPECT_EQ(result(name).at("step"), 3);
    }
  EXPECT_EQ(replaced, 1);
}

TEST_F(TrainingRunTest, LeavesNoDirectoryWhereItsBatchesOrItsAddressAreRefused) {
  const monitoring::Metrics metrics;
  const monitoring::Exporter other(metrics, {.listen = "127.0.0.1:0"});
  const std::vector<std::string> taken = {"monitoring.listen=" + other.address(),
                                          "monitoring.required=true"};
  EXPECT_THROW((void)train(config(taken, "deep/run")), IoError);
  EXPECT_THROW((void)train(config({"batch.tokens=3", "batch.micro_tokens=3"}, "deep/run")),
               InvalidArgument);
  EXPECT_FALSE(fs::exists(directory_ / "deep"));

  (void)train(config());
  EXPECT_THROW((void)train(config(taken), {.overwrite = true}), IoError);
  EXPECT_EQ(result().at("step"), 3) << "the run that was there came back";
  EXPECT_THROW((void)train(config({"train.max_steps=9", taken[0], taken[1]})), IoError);
  EXPECT_THAT(support::read_text(directory_ / "run" / "config.yaml"), HasSubstr("max_steps: 3"));
}

TEST_F(TrainingRunTest, LeavesNoDirectoryWhereAStartIsRefused) {
  EXPECT_THROW((void)train(config({"data.train=/none"}, "deep/run")), Error);
  EXPECT_THROW((void)train(config({}, "deep/run"), {.init_from = "/none"}), CheckpointError);
  EXPECT_THROW((void)train(config({}, "deep/run"), {.resume = "require"}), CheckpointError);
  EXPECT_FALSE(fs::exists(directory_ / "deep"));
}

TEST_F(TrainingRunTest, BeginsFromAnotherRunsWeights) {
  (void)train(config({}, "first"));
  RunOptions options;
  options.init_from = directory_ / "first";

  const Trained trained = train(
      config({"optimizer.learning_rate=1e-12", "optimizer.warmup_start=0"}, "second"), options);

  EXPECT_EQ(trained.first_step, 0);
  const auto weights = [&](const std::string& run) {
    const checkpoint::Checkpoint checkpoint = checkpoint::open_checkpoint(directory_ / run);
    return checkpoint.values(*checkpoint.find("model/embedding.weight"));
  };
  const std::vector<double> first = weights("first"), second = weights("second");
  for (size_t i = 0; i < first.size(); ++i) ASSERT_NEAR(first[i], second[i], 1e-6);
}

TEST_F(TrainingRunTest, BringsTheTokenizerOfOtherWeightsAlong) {
  // Words that the first text does not have, in the same letters.
  for (const bool german : {false, true}) {
    std::string text = data::testing::sentences(90, !german);
    support::write_text(directory_ / (german ? "other.xx" : "other.yy"), text);
  }
  const std::string other = "data.train=" + (directory_ / "other").string();
  const std::string still = "optimizer.learning_rate=1e-12";
  (void)train(config({"train.max_steps=6"}, "first"));
  const RunOptions options = {.init_from = directory_ / "first"};
  const auto tokenizer = [&](const std::string& run) {
    return support::read_text(directory_ / run / "tokenizer.model");
  };

  EXPECT_EQ(train(config({other, still, "optimizer.warmup_start=0"}, "second"), options).first_step,
            0);
  EXPECT_EQ(tokenizer("second"), tokenizer("first"));
  EXPECT_NEAR(result("second").at("validation_loss"), result("first").at("validation_loss"), 1e-4);

  // It is the run's own from here on, with the option and without, also where the run was moved.
  const std::vector<std::string> more = {other, still, "optimizer.warmup_start=0",
                                         "train.max_steps=4"};
  EXPECT_EQ(train(config(more, "second"), options).first_step, 3);
  fs::rename(directory_ / "second", directory_ / "moved");
  fs::rename(directory_ / "first", directory_ / "gone");
  std::vector<std::string> even_more = more;
  even_more.back() = "train.max_steps=5";
  EXPECT_EQ(train(config(even_more, "moved"), {}, 2).first_step, 4);
  EXPECT_EQ(tokenizer("moved"), tokenizer("gone"));
}

TEST_F(TrainingRunTest, UsesATokenizerThatIsGivenAndKeepsIt) {
  (void)train(config({"data.vocabulary_size=70"}, "first"));
  const fs::path own = directory_ / "own.model";
  fs::copy_file(directory_ / "first" / "tokenizer.model", own);
  const std::string given = "data.tokenizer_model=" + own.string();

  (void)train(config({given}));

  EXPECT_EQ(support::read_text(directory_ / "run" / "tokenizer.model"), support::read_text(own));
  fs::remove(own);
  EXPECT_EQ(train(config({"train.max_steps=4"})).first_step, 3) << "the run has its own copy";
  fs::copy_file(directory_ / "first" / "tokenizer.model", own);
  EXPECT_EQ(train(config({given, "train.max_steps=5"})).first_step, 4);

  (void)train(config({}, "learned"));
  const std::string another =
      "data.tokenizer_model=" + (directory_ / "learned" / "tokenizer.model").string();
  EXPECT_TRUE(throws_with<DataError>("the text or the tokenizer has changed", [&] {
    (void)train(config({another, "train.max_steps=6"}));
  }));
  EXPECT_TRUE(throws_with<InvalidArgument>("their tokenizer comes with them", [&] {
    (void)train(config({another}, "new"), {.init_from = directory_ / "run"});
  }));
  EXPECT_FALSE(fs::exists(directory_ / "new"));
}

TEST_F(TrainingRunTest, WritesATraceWhereAProfileIsAskedFor) {
  RunOptions options;
  options.profile = true;

  (void)train(config(), options);

  EXPECT_TRUE(fs::exists(directory_ / "run" / "trace.json"));
  EXPECT_THAT(said(), HasSubstr("profile: steps 2 to 3; "));
}

TEST_F(TrainingRunTest, RefusesMoreRanksThanShardsBeforeItMakesAFile) {
  EXPECT_TRUE(throws_with<InvalidArgument>(
      "batch.shards: 4 virtual shards cannot be shared out over 5 ranks",
      [&] { (void)train(config(), {}, 5); }));
  EXPECT_FALSE(fs::exists(directory_ / "run"));
}

TEST_F(TrainingRunTest, RefusesMoreSeriesThanAllowed) {
  EXPECT_TRUE(
      throws_with<InvalidArgument>("monitoring.max_series: got 10, but 5 blocks on 1 rank need",
                                   [&] { (void)train(config({"monitoring.max_series=10"})); }));
  EXPECT_FALSE(fs::exists(directory_ / "run"));
}

}  // namespace
}  // namespace fathom::launcher
