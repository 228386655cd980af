#include "launcher/train/validator.h"

#include <cmath>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "launcher/evaluation.h"
#include "launcher/translation_score.h"

namespace fathom::launcher {
namespace {

// Names in validation.json.
constexpr const char* kLoss = "validation_loss";
constexpr const char* kSourceGain = "source_gain";
constexpr const char* kTokens = "tokens";
constexpr const char* kBleu = "validation_bleu";

}  // namespace

std::optional<checkpoint::Metric> metric_of(const ValidationRecord& record) {
  if (record.bleu)
    return checkpoint::Metric{
        .name = kBleu, .value = *record.bleu, .better = checkpoint::Better::kHigher};
  if (!std::isfinite(record.result.nll)) return std::nullopt;
  return checkpoint::Metric{
      .name = kLoss, .value = record.result.nll, .better = checkpoint::Better::kLower};
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

void count_validation(const ValidationRecord& record, score::VerdictMonitor& verdict,
                      TrainState& state) {
  track_best(record, state);
  judge(record, verdict);
  state.verdict = verdict.state();
  state.validation_due = 0;
}

checkpoint::ValidationResult result_of(const ValidationRecord& record, const std::string& data) {
  checkpoint::ValidationResult result = {.data = data, .metric = metric_of(record), .figures = {}};
  result.figures = {{kLoss, record.result.nll},
                    {kSourceGain, record.result.source_gain},
                    {kTokens, double(record.result.tokens)}};
  if (record.bleu) result.figures[kBleu] = *record.bleu;
  return result;
}

ValidationRecord record_of(const checkpoint::ValidationResult& result, int64_t step) {
  const auto figure = [&](const char* name) {
    const auto found = result.figures.find(name);
    require<CheckpointError>(found != result.figures.end(), "checkpoint of step ", step, ": ",
                             checkpoint::kValidationName, " has no figure ", name,
                             "; remove it, the validation is made again");
    return found->second;
  };
  ValidationRecord record = {.step = step,
                             .result = {.nll = figure(kLoss),
                                        .source_gain = figure(kSourceGain),
                                        .tokens = int64_t(figure(kTokens))}};
  if (result.figures.contains(kBleu)) record.bleu = figure(kBleu);
  return record;
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

const ValidationRecord& Validator::run(int64_t step, const std::function<void()>& before_batch) {
  const double start = monotonic_seconds();
  const int64_t tokens = config_.batch.micro_tokens;
  ValidationRecord record = {.step = step};
  record.result = validate(model_, device_, *data_.valid, tokens, group_, before_batch);
  if (config_.train.best_metric == BestMetric::kBleu)
    record.bleu = score_split(model_, device_, *data_.valid, references_, *data_.tokenizer, tokens,
                              group_, before_batch)
                      .bleu;
  record.seconds = monotonic_seconds() - start;
  return last_.emplace(record);
}

}  // namespace fathom::launcher
