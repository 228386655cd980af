#include "launcher/train/step_loop.h"

#include <cmath>

#include "core/base/clock.h"
#include "core/model/flops.h"
#include "core/optim/schedule.h"
#include "launcher/signals.h"

namespace fathom::launcher {
namespace {

// Collective.
double peak_of_all(dist::Communicator& group, Device& device, DType dtype) {
  group.barrier();  // ranks on one machine share it, so they measure at the same time
  double peak = device.peak_flops(dtype);
  group.all_reduce_sum(std::span<double>(&peak, 1));
  return peak;
}

struct StopRequested {};

TrainResult stopped_by_signal() {
  return {.kind = StopKind::kSignalled, .reason = "a signal asked for it", .cause = "signal"};
}

}  // namespace

StepLoop::StepLoop(const LoopParts& parts, const TrainState& state)
    : parts_(parts),
      config_(parts.config),
      state_(state),
      verdict_(make_verdict(parts.config, parts.data, state.verdict)),
      lengths_(parts.data.train.lengths()),
      batches_(lengths_, config_.batch, config_.run.seed),
      peak_flops_(peak_of_all(parts.group, parts.model.parameters().device(),
                              parts.model.parameters().dtype())),
      step_limit_(config_) {}

TrainResult StepLoop::run() {
  CheckpointKeeper& keeper = parts_.keeper;
  parts_.observer.state_changed(monitoring::RunState::kTrain);
  bool is_stopped = state_.validation_due > 0 && !make_due_validation();
  while (!is_stopped && !is_over()) {
    const double start = monotonic_seconds();
    const int64_t step = state_.step + 1;
    const data::Batch batch = batches_.at(state_.next);
    autograd::Profile* profile = parts_.profiler ? parts_.profiler->begin_step(step) : nullptr;
    const double rate =
        optim::learning_rate(config_.optimizer, parts_.adam.updates() + 1, config_.train.max_steps);

    const StepGradient gradient = parts_.gradients.run(batch, step, observes(step), profile);
    keeper.before_update();
    const Update update = parts_.updater.apply(gradient, batch.target_tokens, rate, profile);
    keeper.after_update();

    if (profile != nullptr) parts_.profiler->end_step();
    ++state_.step;
    report(batch, gradient, update, rate, start);
    advance(batch, update);
    const StepAgreement agreed =
        agree(parts_.group, {.stops = requested_stop() != 0,
                             .saves = take_requested_save() || keeper.is_due_by_time(),
                             .commit = keeper.poll()});
    keeper.settle(agreed.commit);
    is_stopped = agreed.stops;
    if (is_stopped) break;
    if (agreed.saves || keeper.is_due(state_) || is_complete(config_, state_)) keeper.save(state_);
    is_stopped = state_.validation_due > 0 && !make_due_validation();
  }
  parts_.observer.state_changed(monitoring::RunState::kStopping);
  keeper.finish(state_to_save(), found());
  const bool is_at_its_end = is_over() && state_.validation_due == 0;
  TrainResult result = is_at_its_end ? end_of_run() : stopped_by_signal();
  result.validation = parts_.validator.last();
  return result;
}

bool StepLoop::is_over() const {
  const std::optional<score::Verdict> verdict = verdict_.verdict();
  return is_complete(config_, state_) || (verdict && ends_run(config_, *verdict));
}

bool StepLoop::observes(int64_t step) const {
  const int64_t every = config_.monitoring.layer_statistics_every;
  return every > 0 && (step == 1 || step % every == 0);
}

void StepLoop::advance(const data::Batch& batch, const Update& update) {
  state_.next = batches_.after(state_.next);
  state_.source_tokens += batch.source_tokens;
  state_.target_tokens += batch.target_tokens;
  state_.sentences += int64_t(batch.pairs.size());
  state_.validation_due = parts_.validator.is_due(state_.step) ? state_.step : 0;
  if (!update.is_skipped) return;
  ++state_.skipped;
  (void)verdict_.add_nonfinite(state_.step, std::isfinite(update.loss)
                                                ? score::NonfiniteValue::kGradientNorm
                                                : score::NonfiniteValue::kLoss);
  state_.verdict = verdict_.state();
}

void StepLoop::report(const data::Batch& batch, const StepGradient& gradient, const Update& update,
                      double rate, double start) {
  StepRecord record{.step = state_.step,
                    .epoch = state_.next.epoch,
                    .loss = update.loss,
                    .nll = update.nll,
                    .gradient_norm = update.gradient_norm,
                    .learning_rate = rate,
                    .source_tokens = batch.source_tokens,
                    .target_tokens = batch.target_tokens,
                    .sentences = int64_t(batch.pairs.size()),
                    .is_skipped = update.is_skipped,
                    .optimizer_seconds = update.seconds,
                    .timing = parts_.gradients.timing(),
                    .ranks = parts_.gradients.ranks()};
  if (update.is_skipped)
    parts_.observer.step_skipped(record, parts_.layers.nonfinite(gradient));
  else if (observes(state_.step))
    parts_.observer.layers_measured(state_.step, parts_.layers.measure(gradient, rate));
  record.step_seconds = monotonic_seconds() - start;
  record.flops_utilization = model::training_flops(parts_.model.config(), lengths_, batch.pairs) /
                             record.step_seconds / peak_flops_;
  record.memory_bytes = parts_.gradients.memory_bytes();
  parts_.observer.step_done(record);
  parts_.watchdog.progress(state_.step);
  step_limit_.add(record.step_seconds);
  parts_.watchdog.set_limit(step_limit_.value());
}

const ValidationRecord* StepLoop::validate(monitoring::RunState then) {
  const dist::Watchdog::Section section(parts_.watchdog, "validation", section_limit(config_));
  parts_.observer.state_changed(monitoring::RunState::kValidate);
  const ValidationRecord* record = nullptr;
  try {
    record = &parts_.validator.run(state_.step, [this] {
      if (agree(parts_.group, {.stops = requested_stop() != 0}).stops) throw StopRequested();
    });
    parts_.observer.validated(*record);
  } catch (const StopRequested&) {
    // All ranks have thrown it before the same batch.
  }
  parts_.observer.state_changed(then);
  return record;
}

bool StepLoop::make_due_validation() {
  parts_.keeper.write_now();
  const bool has_verdict = verdict_.verdict().has_value();
  const std::optional<ValidationRecord>& last = parts_.validator.last();
  const bool is_known = last && last->step == state_.step;
  const ValidationRecord* record = is_known ? &*last : validate(monitoring::RunState::kTrain);
  if (record == nullptr) return false;
  before_validation_ = state_;
  count_validation(*record, verdict_, state_);
  if (is_known) return true;  // an earlier attempt has told of it
  if (!has_verdict && verdict_.verdict())
    parts_.observer.judged(state_.step, describe(*verdict_.verdict()));
  parts_.keeper.add_validation(*before_validation_, *found(), state_.best_step == state_.step);
  return true;
}

const TrainState& StepLoop::state_to_save() const {
  const bool is_validated = before_validation_ && before_validation_->step == state_.step;
  return is_validated ? *before_validation_ : state_;
}

// By a validation of this very step.
std::optional<checkpoint::ValidationResult> StepLoop::found() const {
  const std::optional<ValidationRecord>& last = parts_.validator.last();
  if (!last || last->step != state_.step) return std::nullopt;
  return launcher::result_of(*last, parts_.data.valid->hash());
}

// The last validation may still say that the run has failed; the state does not hear of one that
// was not scheduled. A scheduled one is in the state, also where an earlier attempt made it.
TrainResult StepLoop::end_of_run() {
  score::VerdictMonitor verdict = verdict_;
  const auto& last = parts_.validator.last();
  const bool is_validated = last && last->step == state_.step;
  const bool is_judged =
      verdict.state().validations > 0 && verdict.state().last_step == state_.step;
  if (!is_validated && parts_.validator.has_data()) {
    const ValidationRecord* record = validate(monitoring::RunState::kStopping);
    if (record == nullptr) return stopped_by_signal();
    if (!is_judged) judge(*record, verdict);
    parts_.keeper.add_validation(state_, *found(), false);
  }
  return result_of(config_, state_, verdict.finish());
}

}  // namespace fathom::launcher
