#include "monitoring/catalogue.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"

namespace fathom::monitoring {
namespace {

using Names = std::span<const std::string_view>;

// Where a dashboard shows it: the panel, and the title of its row.
struct Display {
  Panel panel;
  std::string_view group;
};

constexpr std::string_view kSide[] = {"side"}, kPhase[] = {"phase"}, kReason[] = {"reason"},
                           kWhere[] = {"where"}, kMetric[] = {"metric"}, kRank[] = {"rank"},
                           kBuild[] = {"version", "commit"},
                           kRun[] = {"name",       "run_id",         "topology",  "model",
                                     "world_size", "virtual_shards", "precision", "device",
                                     "seed",       "host",           "job_id",    "attempt",
                                     "start_time"},
                           kStatus[] = {"status", "reason"}, kBlock[] = {"stack", "layer", "block"};

constexpr std::string_view kSides[] = {"source", "target"};
constexpr std::string_view kPhases[] = {"forward",   "backward",   "reduce",
                                        "optimizer", "checkpoint", "validation"};
constexpr std::string_view kSkipReasons[] = {"nonfinite"};
constexpr std::string_view kPlaces[] = {"loss", "gradient"};
constexpr std::string_view kDropReasons[] = {"empty_source", "empty_target",    "too_long",
                                             "invalid_utf8", "carriage_return", "nul_byte"};
constexpr std::string_view kSaveFailures[] = {"io"};
constexpr std::string_view kRejections[] = {"invalid"};

constexpr double kStepBuckets[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                   1,     2.5,  5,     10,   30,  60,   120};
constexpr double kSaveBuckets[] = {0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600};

constexpr std::array<MetricInfo, kFamilies> make_table() {
  std::array<MetricInfo, kFamilies> table{};
  const auto counter = [&table](Counter c, std::string_view name, std::string_view unit,
                                Display display, std::string_view help, Names labels = {},
                                Names known = {}) {
    table[family_index(c)] = {MetricType::kCounter, name,   help,  unit, display.panel,
                              display.group,        labels, known, {}};
  };
  const auto gauge = [&table](Gauge g, std::string_view name, std::string_view unit,
                              Display display, std::string_view help, Names labels = {}) {
    table[family_index(g)] = {MetricType::kGauge, name,   help, unit, display.panel,
                              display.group,      labels, {},   {}};
  };
  const auto histogram = [&table](Histogram h, std::string_view name, std::string_view unit,
                                  Display display, std::string_view help,
                                  std::span<const double> buckets) {
    table[family_index(h)] = {MetricType::kHistogram, name, help, unit,   display.panel,
                              display.group,          {},   {},   buckets};
  };

  counter(Counter::kSteps, "fathom_steps_total", "steps", {Panel::kStat, "Training"},
          "Training steps done by this process; a skipped one counts.");
  counter(Counter::kTokens, "fathom_tokens_total", "tokens", {Panel::kTimeseries, "Speed"},
          "Tokens trained on, with EOS, all ranks together.", kSide, kSides);
  counter(Counter::kSentences, "fathom_sentences_total", "sentences", {Panel::kTimeseries, "Speed"},
          "Sentence pairs trained on, all ranks together.");
  counter(Counter::kPhaseSeconds, "fathom_phase_seconds_total", "seconds",
          {Panel::kTimeseries, "Speed"}, "Seconds that rank 0 spent in each phase.", kPhase,
          kPhases);
  counter(Counter::kSkippedSteps, "fathom_skipped_steps_total", "steps", {Panel::kStat, "Training"},
          "Steps whose update was not applied.", kReason, kSkipReasons);
  counter(Counter::kNonfinite, "fathom_nonfinite_total", "steps", {Panel::kStat, "Training"},
          "Steps in which NaN or infinity was seen.", kWhere, kPlaces);
  counter(Counter::kDataDropped, "fathom_data_dropped_total", "sentences", {Panel::kTable, "Data"},
          "Sentence pairs left out of training.", kReason, kDropReasons);
  counter(Counter::kRestarts, "fathom_restarts_total", "events", {Panel::kStat, "Run"},
          "1 where this process goes on from a checkpoint.");
  counter(Counter::kCheckpointFailures, "fathom_checkpoint_failures_total", "events",
          {Panel::kStat, "Checkpoints"}, "Saves that failed; training went on.", kReason,
          kSaveFailures);
  counter(Counter::kCheckpointsRejected, "fathom_checkpoints_rejected_total", "events",
          {Panel::kStat, "Checkpoints"}, "Checkpoints found damaged and passed over at a resume.",
          kReason, kRejections);
  counter(Counter::kLayerNonfinite, "fathom_layer_nonfinite_total", "entries",
          {Panel::kHeatmap, "Layers"},
          "NaN or infinite entries seen in the gradient of the block's parameters.", kBlock);

  gauge(Gauge::kStep, "fathom_step", "steps", {Panel::kTimeseries, "Training"},
        "Steps done by the run; where an attempt was lost it steps back.");
  gauge(Gauge::kTargetSteps, "fathom_target_steps", "steps", {Panel::kStat, "Training"},
        "Step at which the run ends at the latest (train.max_steps).");
  gauge(Gauge::kPreviousSteps, "fathom_previous_steps", "steps", {Panel::kStat, "Run"},
        "Steps of the checkpoint from which this process goes on, 0 in a new run.");
  gauge(Gauge::kLostSteps, "fathom_lost_steps", "steps", {Panel::kStat, "Run"},
        "Steps of earlier attempts after that checkpoint, which are done again.");
  gauge(Gauge::kAttempt, "fathom_attempt", "none", {Panel::kStat, "Run"},
        "Attempts at this run so far, this one included.");
  gauge(Gauge::kEpoch, "fathom_epoch", "epochs", {Panel::kStat, "Training"},
        "Epoch under way, the first is 0.");
  gauge(Gauge::kLoss, "fathom_loss", "nats", {Panel::kTimeseries, "Training"},
        "Label-smoothed training loss of the last step, in nats per target token.");
  gauge(Gauge::kValidationLoss, "fathom_validation_loss", "nats",
        {Panel::kTimeseries, "Validation"},
        "Unsmoothed validation loss, in nats per target token.");
  gauge(Gauge::kValidationSourceGain, "fathom_validation_source_gain", "nats",
        {Panel::kTimeseries, "Validation"},
        "Validation loss with the sources exchanged minus the true one, in nats per target token: "
        "0 means that the decoder does not read its source.");
  gauge(Gauge::kValidationScore, "fathom_validation_score", "none",
        {Panel::kTimeseries, "Validation"},
        "Score of the validation translations (BLEU: 0 to 100).", kMetric);
  gauge(Gauge::kLearningRate, "fathom_learning_rate", "none", {Panel::kTimeseries, "Training"},
        "Learning rate of the last step.");
  gauge(Gauge::kGradientNorm, "fathom_gradient_norm", "none", {Panel::kTimeseries, "Training"},
        "Euclidean norm of the whole gradient, averaged over tokens, before clipping.");
  gauge(Gauge::kLastStepTimestamp, "fathom_last_step_timestamp_seconds", "timestamp",
        {Panel::kStat, "Run"}, "Unix time at which the last step ended.");
  gauge(Gauge::kState, "fathom_state", "none", {Panel::kStat, "Run"},
        "What the run does: 0 init, 1 train, 2 validate, 3 save, 4 stopping, 5 finished.");
  gauge(Gauge::kModelFlopsUtilization, "fathom_model_flops_utilization_ratio", "ratio",
        {Panel::kTimeseries, "Speed"},
        "Model floating point operations per second over the peak of the devices, 0 to 1.");
  gauge(Gauge::kCheckpointLastSuccessTimestamp, "fathom_checkpoint_last_success_timestamp_seconds",
        "timestamp", {Panel::kStat, "Checkpoints"},
        "Unix time at which the last checkpoint was complete on disk.");
  gauge(Gauge::kCheckpointLastStep, "fathom_checkpoint_last_step", "steps",
        {Panel::kStat, "Checkpoints"}, "Step of the last complete checkpoint.");
  gauge(Gauge::kCheckpointBytes, "fathom_checkpoint_bytes", "bytes", {Panel::kStat, "Checkpoints"},
        "Size of the last complete checkpoint in bytes.");
  gauge(Gauge::kRankStepLag, "fathom_rank_step_lag_seconds", "seconds",
        {Panel::kTimeseries, "Ranks"},
        "Seconds by which a rank was later than the first at the last exchange.", kRank);
  gauge(Gauge::kRankRelativePerformance, "fathom_rank_relative_performance_ratio", "ratio",
        {Panel::kTimeseries, "Ranks"},
        "Fastest rank's compute time over this rank's for equal work, 1 is the fastest.", kRank);
  gauge(Gauge::kArenaBytes, "fathom_arena_bytes", "bytes", {Panel::kTimeseries, "Machine"},
        "Most bytes of the activation arena in use during the last step on rank 0.");
  gauge(Gauge::kDiskFreeBytes, "fathom_disk_free_bytes", "bytes", {Panel::kStat, "Machine"},
        "Bytes free on the file system of the run directory.");
  gauge(Gauge::kBuildInfo, "fathom_build_info", "none", {Panel::kTable, "Run"},
        "Always 1; the labels tell what runs.", kBuild);
  gauge(Gauge::kRunInfo, "fathom_run_info", "none", {Panel::kTable, "Run"},
        "Always 1; the labels tell how this attempt runs.", kRun);
  gauge(Gauge::kRunStatus, "fathom_run_status", "none", {Panel::kTable, "Run"},
        "1 for how the run stands: running, or how it ended and why.", kStatus);

  histogram(Histogram::kStepDuration, "fathom_step_duration_seconds", "seconds",
            {Panel::kHistogram, "Speed"},
            "Wall time of a training step in seconds, without validation and saving.",
            kStepBuckets);
  histogram(Histogram::kCheckpointDuration, "fathom_checkpoint_duration_seconds", "seconds",
            {Panel::kHistogram, "Checkpoints"}, "Wall time of a successful save in seconds.",
            kSaveBuckets);
  return table;
}

constexpr std::array<MetricInfo, kFamilies> kTable = make_table();

constexpr bool is_unit(std::string_view unit) {
  return std::ranges::find(kUnits, unit) != std::end(kUnits);
}

static_assert(std::ranges::all_of(kTable, [](const MetricInfo& m) { return !m.name.empty(); }),
              "an enumerator has no row in the table");
static_assert(std::ranges::all_of(kTable,
                                  [](const MetricInfo& m) {
                                    return is_unit(m.unit) && !m.group.empty();
                                  }),
              "a row has no unit or no group");

}  // namespace

const char* to_string(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      break;
  }
  return "histogram";
}

const char* to_string(Panel panel) {
  switch (panel) {
    case Panel::kStat:
      return "stat";
    case Panel::kTimeseries:
      return "timeseries";
    case Panel::kHeatmap:
      return "heatmap";
    case Panel::kHistogram:
      return "histogram";
    case Panel::kTable:
      break;
  }
  return "table";
}

std::span<const MetricInfo, kFamilies> fixed_families() { return kTable; }

std::vector<MetricInfo> catalogue(std::span<const BlockGaugeInfo> blocks) {
  std::vector<MetricInfo> all(kTable.begin(), kTable.end());
  for (const BlockGaugeInfo& b : blocks) {
    require(b.name.starts_with("fathom_layer_"), "metrics: a gauge of every block is called ",
            b.name, "; expected fathom_layer_...");
    require(std::ranges::find(all, b.name, &MetricInfo::name) == all.end(), "metrics: ", b.name,
            " is defined twice");
    require(!b.help.empty() && is_unit(b.unit), "metrics: ", b.name, " has the help \"", b.help,
            "\" and the unit \"", b.unit, "\"; expected a text and one of kUnits");
    all.push_back({.name = b.name,
                   .help = b.help,
                   .unit = b.unit,
                   .panel = Panel::kHeatmap,
                   .group = "Layers",
                   .labels = kBlock,
                   .known = {},
                   .buckets = {}});
  }
  return all;
}

int64_t series_needed(std::span<const MetricInfo> families, int64_t blocks, int64_t ranks) {
  int64_t sum = 0;
  for (const MetricInfo& m : families) {
    const auto* labels = m.labels.data();
    if (m.type == MetricType::kHistogram)
      sum += int64_t(m.buckets.size()) + 3;  // +Inf, sum, count
    else if (labels == kBlock)
      sum += blocks;
    else if (labels == kRank)
      sum += ranks;
    else if (labels == kStatus)
      sum += 2;  // running, and the end
    else
      sum += std::max<int64_t>(1, int64_t(m.known.size()));
  }
  return sum;
}

}  // namespace fathom::monitoring
