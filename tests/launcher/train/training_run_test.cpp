#include "launcher/train/training_run.h"

#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "checkpoint/resolve.h"
#include "launcher/config/load.h"
#include "monitoring/exporter.h"
#include "monitoring/history.h"
#include "tests/core/data/data_support.h"
#include "tests/dist/rank_threads.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

namespace fs = std::filesystem;
using support::throws_with;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class TrainingRunTest : public ::testing::Test {
 protected:
  TrainingRunTest() {
    for (const char* split : {"train", "valid"})
      for (const bool german : {false, true})
        support::write_text(directory_ / join(split, german ? ".xx" : ".yy"),
                            data::testing::sentences(60, german));
    ::testing::internal::CaptureStderr();
  }
  ~TrainingRunTest() override {
    if (is_capturing_) ::testing::internal::GetCapturedStderr();
  }

  [[nodiscard]] Config config(const std::vector<std::string>& changes = {},
                              const std::string& run = "run") const {
    std::vector<std::string> keys = {
        "run.directory=" + (directory_ / run).string(),
        "data.train=" + (directory_ / "train").string(),
        "data.valid=" + (directory_ / "valid").string(),
        "data.directory=" + (directory_ / "prepared").string(),
    };
    keys.insert(keys.end(), changes.begin(), changes.end());
    return parse_config(R"(
model: {depth: E1D1, width: 8, ffn_width: 12, heads: 2}
data: {source: xx, target: yy, vocabulary_size: 90, max_length: 80}
batch: {tokens: 200, micro_tokens: 100, shards: 4}
train: {max_steps: 3, validate_every: 2, threads: 1, device: reference}
monitoring: {listen: "off"}
verdict: {after: 1000000}
)",
                        "c.yaml", "small", keys);
  }

  // As `fathom train` does it; where an earlier start has ended the run, that end.
  struct Trained {
    TrainResult result;
    int64_t first_step = -1;  // before the first one of this start; -1: there was nothing to do
  };
  static Trained train(const Config& config, const RunOptions& options = {}, int ranks = 1) {
    Trained out;
    dist::run_ranks(ranks, [&](dist::Communicator& group) {
      Trained mine;
      TrainingRun run(config, options, group);
      if (const std::optional<TrainResult> end = run.earlier_end()) {
        mine.result = *end;
      } else {
        run.open();
        mine.first_step = run.loop().state().step;
        mine.result = run.loop().run();
        run.finish(mine.result);
      }
      if (group.rank() == 0) out = mine;
    });
    return out;
  }

  [[nodiscard]] nlohmann::json result(const std::string& run = "run") const {
    return nlohmann::json::parse(support::read_text(directory_ / run / "result.json"));
  }
  // By array; equal hashes are equal bits.
  [[nodiscard]] std::map<std::string, std::string> hashes(const std::string& run) const {
    std::map<std::string, std::string> out;
    const checkpoint::Checkpoint checkpoint = checkpoint::open_checkpoint(directory_ / run);
    for (const checkpoint::ArrayInfo& info : checkpoint.manifest().arrays)
      out[info.name] = info.hash;
    return out;
  }
  std::string said() {
    is_capturing_ = false;
    return ::testing::internal::GetCapturedStderr();
  }

  support::TemporaryDirectory directory_;
  bool is_capturing_ = true;
};

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

TEST_F(TrainingRunTest, GoesBackAlsoWhereTheRunWouldBeCompleteThere) {
  const Config saving = config({"checkpoint.every_steps=1", "checkpoint.keep_last=9"});
  (void)train(config({"checkpoint.every_steps=1", "checkpoint.keep_last=9", "train.max_steps=5"}));
  const fs::path checkpoints = directory_ / "run" / "checkpoints";

  (void)train(saving, {.resume = checkpoints / "step-00000003"});

  EXPECT_EQ(result().at("step"), 3);
  EXPECT_FALSE(fs::exists(checkpoints / "step-00000005"));
  EXPECT_EQ(checkpoint::open_checkpoint(directory_ / "run").manifest().step, 3);
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

TEST_F(TrainingRunTest, IsSteeredByBleuWhereTheConfigSaysSo) {
  (void)train(config({"train.best_metric=bleu", "train.max_steps=2"}));

  const checkpoint::Checkpoint checkpoint = checkpoint::open_checkpoint(directory_ / "run");
  const auto found = checkpoint::read_validation(checkpoint.path(), checkpoint.manifest());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->metric->name, "validation_bleu");
}

TEST_F(TrainingRunTest, DoesNotGoOnWithOtherTexts) {
  (void)train(config());
  support::write_text(directory_ / "train.yy", data::testing::sentences(60, true));

  EXPECT_TRUE(throws_with<DataError>("the text or the tokenizer has changed",
                                     [&] { (void)train(config({"train.max_steps=5"})); }));
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
      throws_with<InvalidArgument>("monitoring.max_series: got 10, but 5 blocks on 1 ranks",
                                   [&] { (void)train(config({"monitoring.max_series=10"})); }));
  EXPECT_FALSE(fs::exists(directory_ / "run"));
}

}  // namespace
}  // namespace fathom::launcher
