// Every metric family that Fathom exposes: name, type, help, labels, buckets. The names are part of
// the contract (users' alert rules and dashboards use them), so they are fixed at compile time:
// callers name an enumerator, and a misspelt or mistyped metric does not compile.
//
// To add one: an enumerator here, a line in catalogue.cpp, and a call that sets it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace fathom::monitoring {

// Only grows; kept over a resume.
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
  kRunInfo,    // {run, topology, model, world_size, virtual_shards, precision, device}
  // Per layer: {stack, layer, block}.
  kLayerGradientNorm,
  kLayerWeightNorm,
  kLayerUpdateRatio,
  kLayerHiddenRms,
  kLayerOmega,
  kLayerOmegaPredicted,
  kLayerBranchShare,
  kLayerCosine,
  kLayerZeroRatio,
  kCount,
};

enum class Histogram {
  kStepDuration,
  kCheckpointDuration,
  kCount,
};

// Values of fathom_state.
enum class RunState { kInit, kTrain, kValidate, kSave, kStopping, kFinished };

enum class MetricType { kCounter, kGauge, kHistogram };

struct MetricInfo {
  MetricType type = MetricType::kGauge;
  std::string_view name;                     // with prefix and unit: "fathom_step_duration_seconds"
  std::string_view help;                     // one line: meaning, unit, source of the formula
  std::span<const std::string_view> labels;  // label names, in the order in which values are given
  std::span<const std::string_view> known;   // of a family with one label: values that start at 0
  std::span<const double> buckets;           // of a histogram: upper bounds, rising, without +Inf
};

inline constexpr size_t kFamilies =
    size_t(Counter::kCount) + size_t(Gauge::kCount) + size_t(Histogram::kCount);

// Number of series that one block of one layer adds: what depth costs of monitoring.max_series.
inline constexpr int64_t kSeriesPerBlock = 10;

// Series of a run with so many blocks in its layers and so many ranks, once all of them exist;
// counted as for Metrics::series().
[[nodiscard]] int64_t series_needed(int64_t blocks, int64_t ranks);

// Place of a family in catalogue().
[[nodiscard]] constexpr size_t family_index(Counter c) { return size_t(c); }
[[nodiscard]] constexpr size_t family_index(Gauge g) { return size_t(Counter::kCount) + size_t(g); }
[[nodiscard]] constexpr size_t family_index(Histogram h) {
  return size_t(Counter::kCount) + size_t(Gauge::kCount) + size_t(h);
}

[[nodiscard]] std::span<const MetricInfo, kFamilies> catalogue();

}  // namespace fathom::monitoring
