#include "launcher/train/history_sink.h"

#include <cmath>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launcher/train/sample_records.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

using support::read_text;
using support::TemporaryDirectory;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(HistorySink, WritesALineForEachStep) {
  const TemporaryDirectory run;
  HistorySink sink(run.path(), -1);

  sink.step_done(sample_step());

  EXPECT_EQ(read_text(run / "metrics.jsonl"),
            R"({"step":7,"epoch":1,"loss":2.5,"nll":2.25,"gradient_norm":0.75,)"
            R"("learning_rate":0.001,"tokens":100,"timing":{"step_seconds":0.5,)"
            R"("forward_seconds":0.125,"backward_seconds":0.25,"reduce_seconds":0.03125,)"
            R"("optimizer_seconds":0.0625,"tokens_per_second":200.0,"flops_utilization":0.25}})"
            "\n");
}

TEST(HistorySink, WritesEveryRowOfTheLayerTable) {
  const TemporaryDirectory run;
  HistorySink sink(run.path(), -1);

  sink.layers_measured(7, sample_layers());

  std::string fields;
  for (size_t i = 0; i < observe::layer_statistics().size(); ++i)
    fields += join(",\"", observe::layer_statistics()[i].name, "\":", i + 1, ".0");
  EXPECT_EQ(read_text(run / "layers.jsonl"),
            R"({"step":7,"blocks":[{"stack":"decoder","layer":2,"block":"feed_forward")" + fields +
                "}]}\n");
}

TEST(HistorySink, WritesEventsWithTheirReasons) {
  const TemporaryDirectory run;
  HistorySink sink(run.path(), -1);

  sink.started(sample_start());
  sink.step_skipped(skipped_step(), kNonfinite);
  sink.validated(sample_validation());
  sink.judged(7, "plateau: Too high.");
  sink.saved(sample_save());
  sink.save_failed(8, "no space");
  sink.finished(sample_end());

  const std::string time = R"(,"time":[-+.e0-9]+,)";
  EXPECT_THAT(read_text(run / "events.jsonl"),
              MatchesRegex(R"(\{"event":"started")" + time +
                           R"("step":0,"ranks":2,"run_id":"id","init_from":""\})"
                           "\n"
                           R"(\{"event":"skipped")" +
                           time +
                           R"("step":7,"reason":"non-finite","loss":2.5,"gradient_norm":0.75,)"
                           R"("nonfinite_blocks":1,"last_block":"decoder.2.feed_forward"\})"
                           "\n"
                           R"(\{"event":"validated")" +
                           time +
                           R"("step":7,"validation_loss":1.0,"perplexity":2.718281828459045,)"
                           R"("source_gain":0.5,"bleu":12.5\})"
                           "\n"
                           R"(\{"event":"judged")" +
                           time +
                           R"("step":7,"verdict":"plateau: Too high."\})"
                           "\n"
                           R"(\{"event":"saved")" +
                           time +
                           R"("step":7,"path":"run/step-7","bytes":1000,"seconds":0.125,)"
                           R"("wait_seconds":0.0625\})"
                           "\n"
                           R"(\{"event":"save_failed")" +
                           time +
                           R"("step":8,"reason":"no space"\})"
                           "\n"
                           R"(\{"event":"stopped")" +
                           time +
                           R"("step":7,"status":"completed","reason":"reached train.max_steps 7"\})"
                           "\n"));
}

TEST(HistorySink, SaysFromWhereARunWasResumed) {
  const TemporaryDirectory run;
  HistorySink sink(run.path(), 20);
  RunStart start = sample_start();
  start.is_resumed = true;
  start.step = 20;
  start.from = "checkpoints/step-20";
  start.attempt = 3;

  sink.started(start);

  EXPECT_THAT(read_text(run / "events.jsonl"),
              HasSubstr(R"("step":20,"from":"checkpoints/step-20","attempt":3})"));
}

TEST(HistorySink, HoldsTheLinesOfABranchBackUntilItsFirstSave) {
  const TemporaryDirectory run;
  support::write_text(run / "metrics.jsonl", "{\"step\":5}\n{\"step\":6}\n");
  support::write_text(run / "layers.jsonl", "{\"step\":6}\n");
  {
    HistorySink sink(run.path(), 5, true);
    sink.step_done(sample_step());
    sink.layers_measured(7, sample_layers());
    sink.finished(sample_end());  // it has saved nothing
  }
  EXPECT_EQ(read_text(run / "metrics.jsonl"), "{\"step\":5}\n{\"step\":6}\n");
  EXPECT_EQ(read_text(run / "layers.jsonl"), "{\"step\":6}\n");

  HistorySink sink(run.path(), 5, true);
  sink.step_done(sample_step());
  sink.sync();
  sink.step_done(sample_step());

  EXPECT_THAT(read_text(run / "metrics.jsonl"),
              StartsWith("{\"step\":5}\n{\"step\":6}\n{\"marker\":\"resumed\",\"step\":5}\n"
                         "{\"step\":7,"));
  EXPECT_THAT(monitoring::read_effective(run / "metrics.jsonl"), SizeIs(3));
  EXPECT_THAT(monitoring::read_effective(run / "layers.jsonl"), SizeIs(0));
}

TEST(HistorySink, TellsWhereLaterCheckpointsAreNow) {
  const TemporaryDirectory run;
  HistorySink sink(run.path(), 5, true);
  SaveRecord save = sample_save();
  save.set_aside = {"a/step-9", "a/step-8"};

  sink.saved(save);

  EXPECT_THAT(read_text(run / "events.jsonl"),
              HasSubstr(R"("step":7,"paths":["a/step-9","a/step-8"]})"));
}

TEST(HistorySink, SaysWhatAResumeChanged) {
  const TemporaryDirectory run;
  HistorySink sink(run.path(), 20);
  RunStart start = sample_start();
  start.is_resumed = true;
  start.step = 20;
  start.changes = {{10, "run.seed", "1", "2"}, {20, "train.precision", "fp32", "bf16"}};

  sink.started(start);

  EXPECT_THAT(
      read_text(run / "events.jsonl"),
      HasSubstr(R"("changes":[{"step":20,"key":"train.precision","from":"fp32","to":"bf16"}]})"));
}

TEST(HistorySink, RewindsStepsAndLayersOnAResume) {
  const TemporaryDirectory run;
  HistorySink(run.path(), -1).step_done(sample_step());

  const HistorySink resumed(run.path(), 5);

  EXPECT_THAT(monitoring::read_effective(run / "metrics.jsonl"), testing::IsEmpty());
  EXPECT_EQ(read_text(run / "layers.jsonl"), "{\"marker\":\"resumed\",\"step\":5}\n");
  EXPECT_EQ(read_text(run / "events.jsonl"), "");
}

TEST(HistorySink, OfANewRunVoidsTheLinesOfAnAttemptThatSavedNothing) {
  const TemporaryDirectory run;
  HistorySink(run.path(), -1).step_done(sample_step());

  const HistorySink again(run.path(), -1);

  EXPECT_THAT(monitoring::read_effective(run / "metrics.jsonl"), testing::IsEmpty());
  EXPECT_EQ(read_text(run / "layers.jsonl"), "");
}

// As a commit thread does while the loop goes on. Run under TSan.
TEST(HistorySink, SyncsWhileAnotherThreadAppends) {
  const TemporaryDirectory run;
  HistorySink sink(run.path(), -1);

  std::thread committing([&] {
    for (int i = 0; i < 20; ++i) sink.sync();
  });
  for (int i = 0; i < 200; ++i) {
    sink.step_done(sample_step());
    sink.layers_measured(7, sample_layers());
    sink.saved(sample_save());
  }
  committing.join();

  for (const char* name : {"metrics.jsonl", "layers.jsonl", "events.jsonl"})
    EXPECT_EQ(monitoring::read_effective(run / name).size(), 200u) << name;
}

}  // namespace
}  // namespace fathom::launcher
