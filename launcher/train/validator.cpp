#include "launcher/train/validator.h"

#include <cmath>

#include "core/base/clock.h"
#include "launcher/evaluation.h"
#include "launcher/translation_score.h"

namespace fathom::launcher {

std::optional<checkpoint::Metric> metric_of(const ValidationRecord& record) {
  if (record.bleu)
    return checkpoint::Metric{
        .name = "validation_bleu", .value = *record.bleu, .better = checkpoint::Better::kHigher};
  if (!std::isfinite(record.result.nll)) return std::nullopt;
  return checkpoint::Metric{
      .name = "validation_loss", .value = record.result.nll, .better = checkpoint::Better::kLower};
}

void track_best(const ValidationRecord& record, TrainState& state) {
  ++state.validations;
  ++state.validations_without_gain;
  const std::optional<checkpoint::Metric> metric = metric_of(record);
  if (!metric) return;
  const double value =
      metric->better == checkpoint::Better::kHigher ? -metric->value : metric->value;
  if (value >= state.best_value) return;
  state.best_value = value;
  state.best_step = record.step;
  state.validations_without_gain = 0;
}

void judge(const ValidationRecord& record, score::VerdictMonitor& verdict) {
  std::optional<double> gain;
  if (!std::isnan(record.result.source_gain)) gain = record.result.source_gain;
  (void)verdict.add_validation(record.step, record.result.nll, gain);
}

Validator::Validator(const Config& config, const data::PreparedData& data,
                     const std::vector<std::string>& references, model::Transformer& model,
                     Device& device, dist::Communicator& group)
    : config_(config),
      data_(data),
      references_(references),
      model_(model),
      device_(device),
      group_(group) {}

bool Validator::is_due(int64_t step) const {
  const int64_t every = config_.train.validate_every;
  return has_data() && every > 0 && step % every == 0;
}

const ValidationRecord& Validator::run(int64_t step) {
  const double start = monotonic_seconds();
  const int64_t tokens = config_.batch.micro_tokens;
  ValidationRecord record = {.step = step};
  record.result = validate(model_, device_, *data_.valid, tokens, group_);
  if (config_.train.best_metric == BestMetric::kBleu)
    record.bleu =
        score_split(model_, device_, *data_.valid, references_, *data_.tokenizer, tokens, group_)
            .bleu;
  record.seconds = monotonic_seconds() - start;
  return last_.emplace(record);
}

std::optional<checkpoint::Metric> Validator::metric(int64_t step) const {
  if (!last_ || last_->step != step) return std::nullopt;
  return metric_of(*last_);
}

}  // namespace fathom::launcher
