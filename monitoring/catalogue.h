// Every metric family that Fathom exposes: name, type, help, unit, labels, buckets, and how a
// dashboard shows it. The names are part of the contract (users' alert rules and dashboards use
// them), so they are fixed at compile time: callers name an enumerator, and a misspelt or mistyped
// metric does not compile. Only the gauges of every block come from a table of the caller.
//
// To add one: an enumerator here, a row in catalogue.cpp, and a call that sets it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace fathom::monitoring {

// Only grows, from 0 in each process, as Prometheus expects of a counter. Where the run is, gauges
// tell: kStep, kPreviousSteps, kLostSteps, kAttempt.
enum class Counter {
  kSteps,
  kTokens,  // {side}
  kSentences,
  kPhaseSeconds,  // {phase}
  kSkippedSteps,  // {reason}
  kNonfinite,     // {where}
  kDataDropped,   // {reason}
  kRestarts,
  kCheckpointFailures,   // {reason}
  kCheckpointsRejected,  // {reason}
  kLayerNonfinite,       // {stack, layer, block}
  kCount,
};

// The latest value; absent until first set, except kState, which starts at 0.
enum class Gauge {
  kStep,
  kTargetSteps,
  kPreviousSteps,
  kLostSteps,
  kAttempt,
  kEpoch,
  kLoss,
  kValidationLoss,
  kValidationSourceGain,
  kValidationScore,  // {metric}
  kLearningRate,
  kGradientNorm,
  kLastStepTimestamp,
  kState,  // a RunState
  kModelFlopsUtilization,
  kCheckpointLastSuccessTimestamp,
  kCheckpointLastStep,
  kCheckpointBytes,
  kRankStepLag,              // {rank}
  kRankRelativePerformance,  // {rank}
  kArenaBytes,
  kDiskFreeBytes,
  kBuildInfo,  // {version, commit}
  // {name, run_id, topology, model, world_size, virtual_shards, precision, device, seed, host,
  // job_id, attempt, start_time}
  kRunInfo,
  // {status, reason}: running; completed with max_steps, max_epochs or patience; failed with the
  // verdict; interrupted with signal; stopped with error. 0 where it no longer holds.
  kRunStatus,
  kCount,
};

enum class Histogram {
  kStepDuration,
  kCheckpointDuration,
  kCount,
};

// Values of fathom_state.
enum class RunState { kInit, kTrain, kValidate, kSave, kStopping, kFinished };

// A gauge of every block: its index in the table given to catalogue().
enum class BlockGauge : size_t {};

enum class MetricType { kCounter, kGauge, kHistogram };
[[nodiscard]] const char* to_string(MetricType type);

// How a dashboard shows a family: the last value as a number, values over time, colours over time
// and place, a distribution, labels as a table.
enum class Panel { kStat, kTimeseries, kHeatmap, kHistogram, kTable };
[[nodiscard]] const char* to_string(Panel panel);

// What a family's values are counted in; "timestamp" is Unix time in seconds, "none" a pure number.
inline constexpr std::string_view kUnits[] = {"none",   "ratio",     "seconds", "timestamp",
                                              "bytes",  "nats",      "steps",   "epochs",
                                              "tokens", "sentences", "entries", "events"};

struct MetricInfo {
  MetricType type = MetricType::kGauge;
  std::string_view name;                     // with prefix and unit: "fathom_step_duration_seconds"
  std::string_view help;                     // one line: meaning, unit, source of the formula
  std::string_view unit;                     // one of kUnits
  Panel panel = Panel::kTimeseries;          // of a dashboard
  std::string_view group;                    // its row of the dashboard
  std::span<const std::string_view> labels;  // label names, in the order in which values are given
  std::span<const std::string_view> known;   // of a family with one label: values that start at 0
  std::span<const double> buckets;           // of a histogram: upper bounds, rising, without +Inf
};

inline constexpr size_t kFamilies =
    size_t(Counter::kCount) + size_t(Gauge::kCount) + size_t(Histogram::kCount);

// Index of a family in catalogue().
[[nodiscard]] constexpr size_t family_index(Counter c) { return size_t(c); }
[[nodiscard]] constexpr size_t family_index(Gauge g) { return size_t(Counter::kCount) + size_t(g); }
[[nodiscard]] constexpr size_t family_index(Histogram h) {
  return size_t(Counter::kCount) + size_t(Gauge::kCount) + size_t(h);
}
[[nodiscard]] constexpr size_t family_index(BlockGauge b) { return kFamilies + size_t(b); }

// The families fixed at compile time.
[[nodiscard]] std::span<const MetricInfo, kFamilies> fixed_families();

// A gauge of every block; its labels are stack, layer, block.
struct BlockGaugeInfo {
  std::string_view name, help, unit;  // borrowed: they outlive everything made from them
};

// All families: the fixed ones, then those of the blocks, in the order of BlockGauge.
// InvalidArgument for a name that is taken or does not begin with fathom_layer_, an empty help, or
// a unit that is not in kUnits.
[[nodiscard]] std::vector<MetricInfo> catalogue(std::span<const BlockGaugeInfo> blocks = {});

// Series of a run with this many blocks in its layers and this many ranks, once all exist;
// counted as for Metrics::series().
[[nodiscard]] int64_t series_needed(std::span<const MetricInfo> families, int64_t blocks,
                                    int64_t ranks);

}  // namespace fathom::monitoring
