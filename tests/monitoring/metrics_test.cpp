#include "monitoring/metrics.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "monitoring/exposition.h"

namespace fathom::monitoring {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string published(Metrics& metrics) {
  metrics.publish();
  return exposition(*metrics.snapshot());
}

template <class Kind, class Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Kind& error) {
    return error.what();
  }
  return "no error of this kind";
}

// As a caller with two statistics of every block gives it.
constexpr BlockGaugeInfo kBlockGauges[] = {
    {.name = "fathom_layer_omega", .help = "Omega.", .unit = "none"},
    {.name = "fathom_layer_cosine", .help = "Cosine.", .unit = "ratio"}};
constexpr BlockGauge kOmega{0}, kCosine{1};

TEST(Catalogue, NamesAreUniqueAndFollowTheConventions) {
  std::set<std::string_view> names;
  for (const MetricInfo& info : catalogue(kBlockGauges)) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_TRUE(info.name.starts_with("fathom_")) << info.name;
    EXPECT_EQ(info.name.ends_with("_total"), info.type == MetricType::kCounter) << info.name;
    EXPECT_FALSE(info.help.empty()) << info.name;
    EXPECT_EQ(info.help.find_first_of("\n\\"), std::string_view::npos) << info.name;
    EXPECT_EQ(info.buckets.empty(), info.type != MetricType::kHistogram) << info.name;
    EXPECT_TRUE(info.known.empty() || info.labels.size() == 1) << info.name;
    for (size_t b = 1; b < info.buckets.size(); ++b)
      EXPECT_LT(info.buckets[b - 1], info.buckets[b]) << info.name;
  }
  EXPECT_EQ(names.size(), kFamilies + 2);
}

TEST(Catalogue, SaysHowADashboardShowsAFamily) {
  for (const MetricInfo& info : catalogue(kBlockGauges)) {
    EXPECT_NE(std::ranges::find(kUnits, info.unit), std::end(kUnits)) << info.name;
    EXPECT_FALSE(info.group.empty()) << info.name;
    EXPECT_EQ(info.panel == Panel::kHistogram, info.type == MetricType::kHistogram) << info.name;
    EXPECT_EQ(info.panel == Panel::kHeatmap, info.labels.size() == 3) << info.name;
    EXPECT_EQ(info.unit == "timestamp", info.name.ends_with("_timestamp_seconds")) << info.name;
    EXPECT_EQ(info.unit == "bytes", info.name.ends_with("_bytes")) << info.name;
  }
}

TEST(Catalogue, ChecksTheGaugesOfBlocks) {
  const auto refusal = [](const BlockGaugeInfo& info) {
    return message_of<InvalidArgument>([&] { (void)catalogue(std::span(&info, 1)); });
  };

  EXPECT_EQ(refusal({.name = "fathom_omega", .help = "x", .unit = "none"}),
            "metrics: a gauge of every block is called fathom_omega; expected fathom_layer_...");
  EXPECT_EQ(refusal({.name = "fathom_layer_nonfinite_total", .help = "x", .unit = "none"}),
            "metrics: fathom_layer_nonfinite_total is defined twice");
  EXPECT_EQ(refusal({.name = "fathom_layer_x", .help = "x", .unit = "furlongs"}),
            "metrics: fathom_layer_x has the help \"x\" and the unit \"furlongs\"; expected a text "
            "and one of kUnits");
  EXPECT_THAT(refusal({.name = "fathom_layer_x", .help = "", .unit = "none"}),
              HasSubstr("has the help \"\""));
}

TEST(Metrics, KnownSeriesStartAtZero) {
  Metrics metrics;

  const std::string text = published(metrics);

  EXPECT_THAT(text, HasSubstr("\nfathom_steps_total 0\n"));
  EXPECT_THAT(text, HasSubstr("\nfathom_tokens_total{side=\"source\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nfathom_nonfinite_total{where=\"gradient\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nfathom_state 0\n"));
  EXPECT_THAT(text, HasSubstr("\nfathom_step_duration_seconds_count 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("fathom_loss")));  // 0 would be a wrong loss
}

TEST(Metrics, SeriesCountsTheLinesOfTheExposition) {
  Metrics metrics(5000, catalogue(kBlockGauges));
  metrics.set(kOmega, {"encoder", "1", "feed_forward"}, 0.5);

  const std::string text = published(metrics);

  int64_t lines = 0;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) lines += text[at] != '#';
  EXPECT_EQ(metrics.series(), lines);
}

TEST(Metrics, ASnapshotDoesNotChangeAfterwards) {
  Metrics metrics;
  metrics.set(Gauge::kLoss, 1.5);
  metrics.publish();

  metrics.set(Gauge::kLoss, 2.5);
  metrics.set(Gauge::kEpoch, 3);
  const std::string before = exposition(*metrics.snapshot());
  const std::string after = published(metrics);

  EXPECT_THAT(before, HasSubstr("\nfathom_loss 1.5\n"));
  EXPECT_THAT(before, Not(HasSubstr("fathom_epoch")));
  EXPECT_THAT(after, HasSubstr("\nfathom_loss 2.5\n"));
  EXPECT_THAT(after, HasSubstr("\nfathom_epoch 3\n"));
}

TEST(Metrics, HistogramCountsPerUpperBound) {
  Metrics metrics;
  for (const double seconds : {0.005, 0.3, 1e9}) metrics.observe(Histogram::kStepDuration, seconds);

  const std::string text = published(metrics);

  EXPECT_THAT(text, HasSubstr("_bucket{le=\"0.005\"} 1\n"));  // a bound belongs to its bucket
  EXPECT_THAT(text, HasSubstr("_bucket{le=\"0.25\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{le=\"0.5\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{le=\"120\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("fathom_step_duration_seconds_count 3\n"));
}

TEST(Metrics, NonFiniteGaugesAreShown) {
  Metrics metrics;
  metrics.set(Gauge::kLoss, std::numeric_limits<double>::quiet_NaN());
  metrics.set(Gauge::kGradientNorm, std::numeric_limits<double>::infinity());

  const std::string text = published(metrics);

  EXPECT_THAT(text, HasSubstr("\nfathom_loss Nan\n"));  // Prometheus reads it in any case
  EXPECT_THAT(text, HasSubstr("\nfathom_gradient_norm +Inf\n"));
}

TEST(Metrics, RefusesValuesThatMakeASumNan) {
  Metrics metrics;

  EXPECT_EQ(
      message_of<InvalidArgument>([&] { metrics.increment(Counter::kSteps, -1); }),
      "metrics: fathom_steps_total incremented by -1, a counter only grows by finite amounts");
  EXPECT_THROW(metrics.increment(Counter::kSteps, std::nan("")), InvalidArgument);
  EXPECT_EQ(
      message_of<InvalidArgument>([&] { metrics.observe(Histogram::kStepDuration, std::nan("")); }),
      "metrics: fathom_step_duration_seconds observed nan, expected a finite number");
}

TEST(Metrics, RefusesAWrongNumberOfLabels) {
  Metrics metrics(5000, catalogue(kBlockGauges));

  EXPECT_EQ(message_of<InvalidArgument>([&] { metrics.set(kOmega, {"encoder"}, 1); }),
            "metrics: fathom_layer_omega got 1 label values, expected 3");
  EXPECT_EQ(message_of<InvalidArgument>([&] {
              metrics.set(BlockGauge(2), {"a", "b", "c"}, 1);
            }),
            "metrics: got gauge 2 of the blocks, there are 2");
}

TEST(Metrics, CapOnSeriesNamesTheKeyAndKeepsExistingSeries) {
  const int64_t initial = Metrics().series();
  Metrics metrics(initial + 1);
  metrics.set(Gauge::kRankStepLag, {"0"}, 1);

  const std::string message =
      message_of<InvalidArgument>([&] { metrics.set(Gauge::kRankStepLag, {"1"}, 1); });
  metrics.set(Gauge::kRankStepLag, {"0"}, 7);

  EXPECT_THAT(message, HasSubstr("fathom_rank_step_lag_seconds[\"1\"] would be series"));
  EXPECT_THAT(message, HasSubstr("monitoring.max_series is " + std::to_string(initial + 1)));
  EXPECT_EQ(metrics.series(), initial + 1);
  EXPECT_THAT(published(metrics), HasSubstr("fathom_rank_step_lag_seconds{rank=\"0\"} 7\n"));
}

TEST(Metrics, GaugesOfBlocksAreServedWithTheirHelp) {
  Metrics metrics(5000, catalogue(kBlockGauges));
  metrics.set(kCosine, {"decoder", "2", "cross_attention"}, 0.25);

  EXPECT_THAT(published(metrics),
              HasSubstr("# HELP fathom_layer_cosine Cosine.\n# TYPE fathom_layer_cosine gauge\n"
                        "fathom_layer_cosine{stack=\"decoder\",layer=\"2\","
                        "block=\"cross_attention\"} 0.25\n"));
}

TEST(Metrics, BlocksAndRanksCostWhatTheCatalogueSays) {
  const std::vector<MetricInfo> families = catalogue(kBlockGauges);
  Metrics metrics(5000, families);
  for (const std::string layer : {"1", "2"}) {
    metrics.set(kOmega, {"decoder", layer, "feed_forward"}, 1);
    metrics.set(kCosine, {"decoder", layer, "feed_forward"}, 1);
    metrics.increment(Counter::kLayerNonfinite, {"decoder", layer, "feed_forward"}, 0);
  }
  for (const std::string rank : {"0", "1", "2"}) {
    metrics.set(Gauge::kRankStepLag, {rank}, 1);
    metrics.set(Gauge::kRankRelativePerformance, {rank}, 1);
  }
  for (size_t g = 0; g < size_t(Gauge::kCount); ++g) {
    const size_t labels = families[family_index(Gauge(g))].labels.size();
    if (Gauge(g) != Gauge::kRankStepLag && Gauge(g) != Gauge::kRankRelativePerformance)
      metrics.set(Gauge(g), LabelValues(labels, "x"), 1);
  }
  metrics.set(Gauge::kRunStatus, {"running", ""}, 0);

  EXPECT_EQ(metrics.series(), series_needed(families, 2, 3));
}

TEST(Metrics, BytesThatAreNotUtf8AreReplacedAndShareASeries) {
  Metrics metrics;
  metrics.increment(Counter::kDataDropped, {"bad \xff byte"}, 1);
  metrics.increment(Counter::kDataDropped, {"bad \xfe byte"}, 1);

  EXPECT_THAT(published(metrics),
              HasSubstr("fathom_data_dropped_total{reason=\"bad \xEF\xBF\xBD byte\"} 2\n"));
}

// Every snapshot is of one publish: the two gauges are always equal in it. Run under TSan.
TEST(Metrics, ReadersSeeWholeSnapshotsWhileTheWriterWrites) {
  Metrics metrics;
  std::atomic<bool> stop = false;
  std::atomic<int> torn = 0, reads = 0;
  const auto value = [](const Snapshot& s, Gauge gauge) {
    const auto& series = s.layout->at(family_index(gauge));
    return series.empty() ? 0 : s.values[series[0].offset];
  };
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r)
    readers.emplace_back([&] {
      double last = 0;
      while (!stop) {
        const auto snapshot = metrics.snapshot();
        const double loss = value(*snapshot, Gauge::kLoss);
        if (loss != value(*snapshot, Gauge::kEpoch) || loss < last) ++torn;
        last = loss;
        ++reads;
      }
    });

  for (int i = 1; i <= 2000 || reads < 100; ++i) {
    metrics.set(Gauge::kLoss, i);
    metrics.set(Gauge::kEpoch, i);
    if (i < 50) metrics.set(Gauge::kRankStepLag, {std::to_string(i)}, i);
    metrics.publish();
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();

  EXPECT_EQ(torn, 0);
}

}  // namespace
}  // namespace fathom::monitoring
