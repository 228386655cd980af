#include "launcher/train/metrics_sink.h"

#include <cmath>

#include "core/base/clock.h"
#include "launcher/metric_catalogue.h"
#include "launcher/train/rank_pace.h"
#include "launcher/train/run_info.h"
#include "launcher/version.h"

namespace fathom::launcher {

using monitoring::BlockGauge;
using monitoring::Counter;
using monitoring::Gauge;
using monitoring::Histogram;

namespace {

monitoring::LabelValues labels_of(const topology::BlockContext& block) {
  return {to_string(block.stack), std::to_string(block.layer), to_string(block.kind)};
}

}  // namespace

MetricsSink::MetricsSink(const Config& config)
    : config_(config),
      has_blocks_(config.monitoring.detail == Detail::kBlock),
      metrics_(config.monitoring.max_series, metric_catalogue()) {
  metrics_.set(Gauge::kBuildInfo, {version(), commit()}, 1);
  metrics_.set(Gauge::kTargetSteps, double(config.train.max_steps));
  metrics_.publish();
}

void MetricsSink::started(const RunStart& start) {
  metrics_.set(Gauge::kRunInfo, run_info(config_, start, wall_seconds()), 1);
  set_status("running", "");
  metrics_.set(Gauge::kStep, double(start.step));
  metrics_.set(Gauge::kPreviousSteps, double(start.step));
  metrics_.set(Gauge::kLostSteps, double(start.lost_steps));
  metrics_.set(Gauge::kAttempt, double(start.attempt));
  if (start.is_resumed) metrics_.increment(Counter::kRestarts);
  if (start.rejected > 0)
    metrics_.increment(Counter::kCheckpointsRejected, {"invalid"}, double(start.rejected));
  for (const auto& [reason, count] : start.dropped)
    metrics_.increment(Counter::kDataDropped, {reason}, double(count));
  metrics_.publish();
}

void MetricsSink::state_changed(monitoring::RunState state) {
  metrics_.set(Gauge::kState, double(int(state)));
  metrics_.publish();
}

void MetricsSink::step_done(const StepRecord& r) {
  metrics_.increment(Counter::kSteps);
  if (r.is_skipped) {
    metrics_.increment(Counter::kSkippedSteps, {"nonfinite"}, 1);
    metrics_.increment(Counter::kNonfinite, {std::isfinite(r.loss) ? "gradient" : "loss"}, 1);
  }
  metrics_.increment(Counter::kTokens, {"source"}, double(r.source_tokens));
  metrics_.increment(Counter::kTokens, {"target"}, double(r.target_tokens));
  metrics_.increment(Counter::kSentences, double(r.sentences));
  metrics_.increment(Counter::kPhaseSeconds, {"forward"}, r.timing.forward_seconds);
  metrics_.increment(Counter::kPhaseSeconds, {"backward"}, r.timing.backward_seconds);
  metrics_.increment(Counter::kPhaseSeconds, {"reduce"}, r.timing.reduce_seconds);
  metrics_.increment(Counter::kPhaseSeconds, {"optimizer"}, r.optimizer_seconds);
  metrics_.set(Gauge::kStep, double(r.step));
  metrics_.set(Gauge::kEpoch, double(r.epoch));
  metrics_.set(Gauge::kLoss, r.loss);
  metrics_.set(Gauge::kGradientNorm, r.gradient_norm);
  metrics_.set(Gauge::kLearningRate, r.learning_rate);
  metrics_.set(Gauge::kLastStepTimestamp, wall_seconds());
  metrics_.set(Gauge::kModelFlopsUtilization, r.flops_utilization);
  metrics_.set(Gauge::kArenaBytes, double(r.memory_bytes));
  metrics_.observe(Histogram::kStepDuration, r.step_seconds);
  set_ranks(r.ranks);
  metrics_.publish();
}

void MetricsSink::set_ranks(const std::vector<RankWork>& ranks) {
  const std::vector<RankPace> paces = rank_paces(ranks);
  for (size_t i = 0; i < paces.size(); ++i) {
    const monitoring::LabelValues rank = {std::to_string(i)};
    metrics_.set(Gauge::kRankStepLag, rank, paces[i].lag_seconds);
    if (paces[i].relative_speed)
      metrics_.set(Gauge::kRankRelativePerformance, rank, *paces[i].relative_speed);
  }
}

void MetricsSink::layers_measured(int64_t /*step*/, std::span<const observe::LayerRecord> layers) {
  if (!has_blocks_) return;
  for (const observe::LayerRecord& layer : layers) {
    const monitoring::LabelValues labels = labels_of(layer.block);
    for (size_t row = 0; row < layer.values.size(); ++row)
      metrics_.set(BlockGauge(row), labels, layer.values[row]);
    metrics_.increment(Counter::kLayerNonfinite, labels, 0);
  }
}

void MetricsSink::step_skipped(const StepRecord& /*record*/,
                               std::span<const observe::NonfiniteBlock> blocks) {
  if (!has_blocks_) return;
  for (const auto& [block, entries] : blocks)
    metrics_.increment(Counter::kLayerNonfinite, labels_of(block), double(entries));
}

void MetricsSink::validated(const ValidationRecord& r) {
  metrics_.set(Gauge::kValidationLoss, r.result.nll);
  if (std::isfinite(r.result.source_gain))
    metrics_.set(Gauge::kValidationSourceGain, r.result.source_gain);
  if (r.bleu) metrics_.set(Gauge::kValidationScore, {"bleu"}, *r.bleu);
  metrics_.increment(Counter::kPhaseSeconds, {"validation"}, r.seconds);
  metrics_.publish();
}

void MetricsSink::saved(const SaveRecord& r) {
  metrics_.set(Gauge::kCheckpointLastSuccessTimestamp, wall_seconds());
  metrics_.set(Gauge::kCheckpointLastStep, double(r.step));
  metrics_.set(Gauge::kCheckpointBytes, double(r.bytes));
  metrics_.observe(Histogram::kCheckpointDuration, r.seconds);
  metrics_.increment(Counter::kPhaseSeconds, {"checkpoint"}, r.wait_seconds);
  std::error_code ignored;
  const auto space = std::filesystem::space(config_.run.directory, ignored);
  if (!ignored) metrics_.set(Gauge::kDiskFreeBytes, double(space.available));
  metrics_.publish();
}

void MetricsSink::save_failed(int64_t /*step*/, const std::string& /*reason*/) {
  metrics_.increment(Counter::kCheckpointFailures, {"io"}, 1);
  metrics_.publish();
}

void MetricsSink::set_status(const std::string& status, const std::string& reason) {
  if (!status_.empty()) metrics_.set(Gauge::kRunStatus, status_, 0);
  status_ = {status, reason};
  metrics_.set(Gauge::kRunStatus, status_, 1);
}

void MetricsSink::finished(const RunEnd& end) {
  set_status(end.status, end.cause);
  state_changed(monitoring::RunState::kFinished);
}

}  // namespace fathom::launcher
