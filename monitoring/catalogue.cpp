#include "monitoring/catalogue.h"

#include <algorithm>
#include <array>

namespace fathom::monitoring {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::string_view kSide[] = {"side"}, kPhase[] = {"phase"}, kReason[] = {"reason"},
                           kWhere[] = {"where"}, kMetric[] = {"metric"}, kRank[] = {"rank"},
                           kBuild[] = {"version", "commit"},
                           kRun[] = {"run",        "topology",       "model",
                                     "world_size", "virtual_shards", "precision",
                                     "device"},
                           kBlock[] = {"stack", "layer", "block"};

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
  const auto counter = [&table](Counter c, std::string_view name, std::string_view help,
                                Names labels = {}, Names known = {}) {
    table[family_index(c)] = {MetricType::kCounter, name, help, labels, known, {}};
  };
  const auto gauge = [&table](Gauge g, std::string_view name, std::string_view help,
                              Names labels = {}) {
    table[family_index(g)] = {MetricType::kGauge, name, help, labels, {}, {}};
  };
  const auto layer = [&gauge](Gauge g, std::string_view name, std::string_view help) {
    gauge(g, name, help, kBlock);
  };
  const auto histogram = [&table](Histogram h, std::string_view name, std::string_view help,
                                  std::span<const double> buckets) {
    table[family_index(h)] = {MetricType::kHistogram, name, help, {}, {}, buckets};
  };

  counter(Counter::kSteps, "fathom_steps_total",
          "Training steps done, over all restarts; a skipped one counts.");
  counter(Counter::kTokens, "fathom_tokens_total",
          "Tokens trained on, with EOS, all ranks together.", kSide, kSides);
  counter(Counter::kSentences, "fathom_sentences_total",
          "Sentence pairs trained on, all ranks together.");
  counter(Counter::kPhaseSeconds, "fathom_phase_seconds_total",
          "Seconds that rank 0 spent in each phase.", kPhase, kPhases);
  counter(Counter::kSkippedSteps, "fathom_skipped_steps_total",
          "Steps whose update was not applied.", kReason, kSkipReasons);
  counter(Counter::kNonfinite, "fathom_nonfinite_total", "Steps in which NaN or infinity was seen.",
          kWhere, kPlaces);
  counter(Counter::kDataDropped, "fathom_data_dropped_total",
          "Sentence pairs left out of training.", kReason, kDropReasons);
  counter(Counter::kRestarts, "fathom_restarts_total", "Resumes of this run from a checkpoint.");
  counter(Counter::kCheckpointFailures, "fathom_checkpoint_failures_total",
          "Saves that failed; training went on.", kReason, kSaveFailures);
  counter(Counter::kCheckpointsRejected, "fathom_checkpoints_rejected_total",
          "Checkpoints found damaged and passed over at a resume.", kReason, kRejections);
  counter(Counter::kLayerNonfinite, "fathom_layer_nonfinite_total",
          "NaN or infinite entries seen in the gradient of the block's parameters.", kBlock);

  gauge(Gauge::kEpoch, "fathom_epoch", "Epoch under way, the first is 0.");
  gauge(Gauge::kLoss, "fathom_loss",
        "Label-smoothed training loss of the last step, in nats per target token.");
  gauge(Gauge::kValidationLoss, "fathom_validation_loss",
        "Unsmoothed validation loss, in nats per target token.");
  gauge(Gauge::kValidationSourceGain, "fathom_validation_source_gain",
        "Validation loss with the sources exchanged minus the true one, in nats per target token: "
        "0 means that the decoder does not read its source.");
  gauge(Gauge::kValidationScore, "fathom_validation_score",
        "Score of the validation translations (BLEU: 0 to 100).", kMetric);
  gauge(Gauge::kLearningRate, "fathom_learning_rate", "Learning rate of the last step.");
  gauge(Gauge::kGradientNorm, "fathom_gradient_norm",
        "Euclidean norm of the whole gradient, averaged over tokens, before clipping.");
  gauge(Gauge::kLastStepTimestamp, "fathom_last_step_timestamp_seconds",
        "Unix time at which the last step ended.");
  gauge(Gauge::kState, "fathom_state",
        "What the run does: 0 init, 1 train, 2 validate, 3 save, 4 stopping, 5 finished.");
  gauge(Gauge::kModelFlopsUtilization, "fathom_model_flops_utilization_ratio",
        "Model floating point operations per second over the peak of the devices, 0 to 1.");
  gauge(Gauge::kCheckpointLastSuccessTimestamp, "fathom_checkpoint_last_success_timestamp_seconds",
        "Unix time at which the last checkpoint was complete on disk.");
  gauge(Gauge::kCheckpointLastStep, "fathom_checkpoint_last_step",
        "Step of the last complete checkpoint.");
  gauge(Gauge::kCheckpointBytes, "fathom_checkpoint_bytes",
        "Size of the last complete checkpoint in bytes.");
  gauge(Gauge::kRankStepLag, "fathom_rank_step_lag_seconds",
        "Seconds by which a rank was later than the first at the last exchange.", kRank);
  gauge(Gauge::kRankRelativePerformance, "fathom_rank_relative_performance_ratio",
        "Fastest rank's compute time over this rank's for equal work, 1 is the fastest.", kRank);
  gauge(Gauge::kArenaBytes, "fathom_arena_bytes",
        "Most bytes of the activation arena in use during the last step on rank 0.");
  gauge(Gauge::kDiskFreeBytes, "fathom_disk_free_bytes",
        "Bytes free on the file system of the run directory.");
  gauge(Gauge::kBuildInfo, "fathom_build_info", "Always 1; the labels tell what runs.", kBuild);
  gauge(Gauge::kRunInfo, "fathom_run_info", "Always 1; the labels tell how it runs.", kRun);

  layer(Gauge::kLayerGradientNorm, "fathom_layer_gradient_norm",
        "Euclidean norm of the gradient of the block's parameters, before clipping "
        "(Xiong et al., arXiv 2002.04745, section 3).");
  layer(Gauge::kLayerWeightNorm, "fathom_layer_weight_norm",
        "Euclidean norm of the block's parameters.");
  layer(Gauge::kLayerUpdateRatio, "fathom_layer_update_ratio",
        "Norm of the last update over the norm of the block's parameters, 1e-3 is usual.");
  layer(Gauge::kLayerHiddenRms, "fathom_layer_hidden_rms",
        "Root mean square of the hidden state after the block.");
  layer(Gauge::kLayerOmega, "fathom_layer_omega",
        "Root mean square change of the normalised hidden state over the block; towards 0 the "
        "representation collapses (ResiDual, arXiv 2304.14802, theorem 3.3).");
  layer(Gauge::kLayerOmegaPredicted, "fathom_layer_omega_predicted",
        "What fathom_layer_omega would be if the block's output were independent of the stream "
        "(after ResiDual, arXiv 2304.14802, theorem 3.3).");
  layer(Gauge::kLayerBranchShare, "fathom_layer_branch_share",
        "Standard deviation of the branch over that of the sum it enters, 0 to 1 "
        "(Liu et al., arXiv 2004.08249, section 4).");
  layer(Gauge::kLayerCosine, "fathom_layer_cosine",
        "Mean cosine between the hidden states before and after the block, 1 means no change "
        "(Gromov et al., arXiv 2403.17887).");
  layer(Gauge::kLayerZeroRatio, "fathom_layer_zero_ratio",
        "Share of exact zeros in the gradient of the block's parameters, 0 to 1.");

  histogram(Histogram::kStepDuration, "fathom_step_duration_seconds",
            "Wall time of a training step in seconds, without validation and saving.",
            kStepBuckets);
  histogram(Histogram::kCheckpointDuration, "fathom_checkpoint_duration_seconds",
            "Wall time of a successful save in seconds.", kSaveBuckets);
  return table;
}

constexpr std::array<MetricInfo, kFamilies> kTable = make_table();

static_assert(std::ranges::all_of(kTable, [](const MetricInfo& m) { return !m.name.empty(); }),
              "an enumerator has no line in the table");
static_assert(std::ranges::count_if(kTable, [](const MetricInfo& m) {
                return m.labels.data() == kBlock;
              }) == kSeriesPerBlock);

}  // namespace

std::span<const MetricInfo, kFamilies> catalogue() { return kTable; }

int64_t series_needed(int64_t blocks, int64_t ranks) {
  int64_t sum = 0;
  for (const MetricInfo& m : kTable) {
    const auto* labels = m.labels.data();
    if (m.type == MetricType::kHistogram)
      sum += int64_t(m.buckets.size()) + 3;  // +Inf, sum, count
    else if (labels == kBlock)
      sum += blocks;
    else if (labels == kRank)
      sum += ranks;
    else
      sum += std::max<int64_t>(1, int64_t(m.known.size()));
  }
  return sum;
}

}  // namespace fathom::monitoring
