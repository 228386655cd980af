#include "launcher/train/metrics_sink.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/metric_catalogue.h"
#include "monitoring/exposition.h"
#include "tests/launcher/train/sample_records.h"

namespace fathom::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MetricsSinkTest : public ::testing::Test {
 protected:
  static Config config(Detail detail = Detail::kBlock) {
    Config c;
    c.run.name = "small";
    c.run.directory = "/";
    c.model.encoder_layers = 3;
    c.model.decoder_layers = 2;
    c.batch.shards = 8;
    c.monitoring.detail = detail;
    return c;
  }
  static std::string served(const MetricsSink& sink) {
    return monitoring::exposition(*sink.metrics().snapshot());
  }
  static void send_all_events(MetricsSink& sink) {
    RunStart start = sample_start();
    start.is_resumed = true;
    start.step = 6;
    start.lost_steps = 2;
    sink.started(start);
    sink.layers_measured(7, sample_layers());
    sink.step_skipped(skipped_step(), kNonfinite);
    sink.step_done(skipped_step());
    sink.validated(sample_validation());
    sink.saved(sample_save());
    sink.save_failed(8, "no space");
    sink.finished(sample_end());
  }
};

// No entry of the catalogue that nothing sets.
TEST_F(MetricsSinkTest, SetsEveryMetricOfTheCatalogue) {
  const Config c = config();
  MetricsSink sink(c);

  send_all_events(sink);

  const std::shared_ptr<const monitoring::Snapshot> snapshot = sink.metrics().snapshot();
  for (size_t f = 0; f < metric_catalogue().size(); ++f) {
    const monitoring::MetricInfo& info = metric_catalogue()[f];
    const auto is_set = [&](const monitoring::Snapshot::Series& series) {
      return snapshot->values.at(series.offset + info.buckets.size()) != 0;  // a histogram's count
    };
    EXPECT_TRUE(std::ranges::any_of(snapshot->layout->at(f), is_set))
        << info.name << " is set by nothing";
  }
}

TEST_F(MetricsSinkTest, ServesAStep) {
  const Config c = config();
  MetricsSink sink(c);

  sink.step_done(sample_step());

  const std::string text = served(sink);
  EXPECT_THAT(text, HasSubstr("\nfathom_steps_total 1\n"));
  EXPECT_THAT(text, HasSubstr("fathom_tokens_total{side=\"target\"} 100\n"));
  EXPECT_THAT(text, HasSubstr("fathom_phase_seconds_total{phase=\"backward\"} 0.25\n"));
  EXPECT_THAT(text, HasSubstr("\nfathom_loss 2.5\n"));
  EXPECT_THAT(text, HasSubstr("fathom_rank_step_lag_seconds{rank=\"1\"} 0.25\n"));
  EXPECT_THAT(text, HasSubstr("fathom_rank_relative_performance_ratio{rank=\"1\"} 0.5\n"));
  EXPECT_THAT(text, HasSubstr("fathom_skipped_steps_total{reason=\"nonfinite\"} 0\n"));
}

TEST_F(MetricsSinkTest, ServesHowTheRunStands) {
  const Config c = config();
  MetricsSink sink(c);

  sink.started(sample_start());
  EXPECT_THAT(served(sink), HasSubstr("\nfathom_run_info{name=\"small\",run_id=\""));
  EXPECT_THAT(served(sink), HasSubstr("\nfathom_run_status{status=\"running\",reason=\"\"} 1\n"));

  RunEnd end = sample_end();
  end.status = "failed";
  end.cause = "plateau";
  sink.finished(end);
  EXPECT_THAT(served(sink), HasSubstr("{status=\"running\",reason=\"\"} 0\n"));
  EXPECT_THAT(served(sink), HasSubstr("{status=\"failed\",reason=\"plateau\"} 1\n"));
}

TEST_F(MetricsSinkTest, SaysWhereASkippedStepWasNotFinite) {
  const Config c = config();
  MetricsSink sink(c);
  StepRecord record = skipped_step();

  sink.step_done(record);
  record.loss = std::nan("");
  sink.step_done(record);

  EXPECT_THAT(served(sink), HasSubstr("fathom_skipped_steps_total{reason=\"nonfinite\"} 2\n"));
  EXPECT_THAT(served(sink), HasSubstr("fathom_nonfinite_total{where=\"gradient\"} 1\n"));
  EXPECT_THAT(served(sink), HasSubstr("fathom_nonfinite_total{where=\"loss\"} 1\n"));
}

TEST_F(MetricsSinkTest, LeavesOutWhatAValidationDoesNotHave) {
  const Config c = config();
  MetricsSink sink(c);
  ValidationRecord record = sample_validation();
  record.bleu.reset();
  record.result.source_gain = std::nan("");

  sink.validated(record);

  EXPECT_THAT(served(sink), HasSubstr("\nfathom_validation_loss 1\n"));
  EXPECT_THAT(served(sink), Not(HasSubstr("fathom_validation_source_gain")));
  EXPECT_THAT(served(sink), Not(HasSubstr("fathom_validation_score")));
}

TEST_F(MetricsSinkTest, ServesEveryRowOfTheLayerTable) {
  const Config c = config();
  MetricsSink sink(c);

  sink.layers_measured(7, sample_layers());
  sink.step_done(sample_step());

  const std::string labels = R"({stack="decoder",layer="2",block="feed_forward"} )";
  for (size_t i = 0; i < observe::layer_statistics().size(); ++i)
    EXPECT_THAT(served(sink), HasSubstr(join("\nfathom_layer_", observe::layer_statistics()[i].name,
                                             labels, i + 1, "\n")));
  EXPECT_THAT(served(sink), HasSubstr("\nfathom_layer_nonfinite_total" + labels + "0\n"));
}

TEST_F(MetricsSinkTest, ServesNothingOfLayersWithDetailRun) {
  const Config c = config(Detail::kRun);
  MetricsSink sink(c);

  send_all_events(sink);

  EXPECT_THAT(served(sink), Not(HasSubstr("fathom_layer_")));
}

// Prometheus takes a counter that falls for one of a new process, and adds all of it.
TEST_F(MetricsSinkTest, CountsFromZeroAndTellsWhereTheRunIsInGauges) {
  Config c = config();
  c.train.max_steps = 900;
  MetricsSink sink(c);
  RunStart resume = sample_start();
  resume.is_resumed = true;
  resume.step = 500;
  resume.lost_steps = 25;
  resume.attempt = 4;

  sink.started(resume);

  EXPECT_THAT(served(sink), HasSubstr("\nfathom_steps_total 0\n"));
  EXPECT_THAT(served(sink), HasSubstr("\nfathom_restarts_total 1\n"));
  EXPECT_THAT(served(sink), HasSubstr("\nfathom_step 500\n"));
  EXPECT_THAT(served(sink), HasSubstr("\nfathom_target_steps 900\n"));
  EXPECT_THAT(served(sink), HasSubstr("\nfathom_previous_steps 500\n"));
  EXPECT_THAT(served(sink), HasSubstr("\nfathom_lost_steps 25\n"));
  EXPECT_THAT(served(sink), HasSubstr("\nfathom_attempt 4\n"));

  sink.step_done(sample_step());
  EXPECT_THAT(served(sink), HasSubstr("\nfathom_steps_total 1\n"));
  EXPECT_THAT(served(sink), HasSubstr("\nfathom_step 7\n"));
  EXPECT_THAT(served(sink), HasSubstr("\nfathom_previous_steps 500\n"));
}

}  // namespace
}  // namespace fathom::launcher
