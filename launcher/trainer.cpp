#include "launcher/trainer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/model/flops.h"
#include "core/optim/schedule.h"
#include "launcher/cores.h"
#include "launcher/provenance.h"
#include "launcher/signals.h"

namespace fathom::launcher {
namespace {

constexpr int64_t kMostSkippedInARow = 10;  // non-finite updates, then the run has failed
constexpr auto kLongestSection = std::chrono::hours(1);  // of a validation or a save

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

score::VerdictOptions verdict_options(const Config& c, const data::PreparedData& data) {
  const int64_t after = c.verdict.after > 0 ? c.verdict.after
                                            : score::default_verdict_after(c.optimizer.warmup_steps,
                                                                           c.train.max_steps);
  return {.unigram_entropy = data.unigram_entropy,
          .after = after,
          .encoder_decoder = c.model.kind == model::ModelKind::kEncoderDecoder,
          .nonfinite_limit = kMostSkippedInARow};
}

StepOptions step_options(const Config& c, const Sharding& sharding, int group_size) {
  const bool overlaps =
      c.dist.overlap == Overlap::kOn ||
      (c.dist.overlap == Overlap::kAuto && group_size > 1 && has_spare_core(threads_per_rank(c)));
  return {.reducer = {.reduction = reduction_of(c.dist),
                      .overlap = overlaps ? dist::Overlap::kOn : dist::Overlap::kOff,
                      .outcome = sharding.outcome(),
                      .shards = int(c.batch.shards)},
          .micro_tokens = c.batch.micro_tokens,
          .label_smoothing = c.optimizer.label_smoothing,
          .seed = c.run.seed};
}

// Collective.
double peak_of_all(dist::Communicator& group, Device& device, DType dtype) {
  group.barrier();  // ranks on one machine share it, so they measure at the same time
  double peak = device.peak_flops(dtype);
  group.all_reduce_sum(std::span<double>(&peak, 1));
  return peak;
}

int64_t block_sums(const TrainerParts& parts) {
  return parts.config.batch.shards * int64_t(parts.model.blocks().size()) * observe::kBlockSums;
}

int64_t report_length(const TrainerParts& parts, const observe::ParameterProbe& probe) {
  return block_sums(parts) + probe.count();
}

}  // namespace

Trainer::Trainer(const TrainerParts& parts, const TrainState& state)
    : parts_(parts),
      config_(parts.config),
      state_(state),
      verdict_(verdict_options(parts.config, parts.data)),
      gradient_step_(parts.model, parts.device, parts.data.train, parts.group,
                     parts.sharding.ownership(),
                     step_options(parts.config, parts.sharding, parts.group.size())),
      probe_(parts.sharding.slices(), parts.sharding.chunk_gather()),
      control_(parts.device.compute().allocate(1, kernels::kControlValues, DType::kF64)),
      report_(parts.device.compute().allocate(1, report_length(parts, probe_), DType::kF64)),
      lengths_(parts.data.train.lengths()),
      peak_flops_(peak_of_all(parts.group, parts.device, parts.model.parameters().dtype())) {
  verdict_.restore(state_.verdict);
}

TrainResult Trainer::run() {
  saved_step_ = state_.step > 0 ? state_.step : -1;
  last_save_seconds_ = monotonic_seconds();
  parts_.recorder.state(monitoring::RunState::kTrain);
  bool is_interrupted = false;
  while (!is_interrupted && !is_complete(config_, state_) && !verdict_.verdict()) {
    next_step();
    if (wants_validation()) validate();
    const Wishes wishes = agree();
    is_interrupted = wishes.stop;
    const bool is_best = config_.checkpoint.keep_best > 0 && state_.best_step == state_.step;
    if ((wishes.save || is_best) && !is_interrupted) save();
  }
  TrainResult result;
  if (is_interrupted && !is_complete(config_, state_) && !verdict_.verdict()) {
    result = {.kind = StopKind::kSignalled, .reason = "a signal asked for it", .validation = {}};
  } else {
    // A validation that only the end asks for leaves no trace in the state: going on from here with
    // a larger max_steps gives what a run that never stopped gives.
    const score::VerdictState verdict = verdict_.state();
    const bool is_extra = validated_step_ != state_.step && parts_.data.valid;
    if (is_extra) validate();
    result = final_result();
    if (is_extra) verdict_.restore(verdict);
  }
  parts_.recorder.state(monitoring::RunState::kStopping);
  if (saved_step_ != state_.step && !save())
    fail<IoError>("the last checkpoint, of step ", state_.step,
                  ", could not be written: ", save_failure_,
                  "; mend that and run the same command: the run goes on from the one before");
  result.validation = last_validation_;
  return result;
}

// The last validation may still say that the run has failed.
TrainResult Trainer::final_result() {
  const score::Verdict verdict = verdict_.finish();
  if (verdict.status != score::VerdictStatus::kOk)
    return {.kind = StopKind::kFailed, .reason = describe(verdict), .validation = {}};
  const TrainConfig& c = config_.train;
  if (c.max_steps > 0 && state_.step >= c.max_steps)
    return {.kind = StopKind::kCompleted,
            .reason = join("reached train.max_steps ", c.max_steps),
            .validation = {}};
  if (c.max_epochs > 0 && state_.epoch >= c.max_epochs)
    return {.kind = StopKind::kCompleted,
            .reason = join("reached train.max_epochs ", c.max_epochs),
            .validation = {}};
  return {.kind = StopKind::kCompleted,
          .reason = join("no better validation for ", c.patience,
                         " in a row (train.patience); best at step ", state_.best_step),
          .validation = {}};
}

dist::Watchdog::Duration section_limit(const Config& config, dist::Watchdog::Duration most) {
  const dist::Watchdog::Duration step(config.dist.timeout_seconds);
  return std::max(step, std::min(10 * step, most));
}

bool is_complete(const Config& config, const TrainState& state) {
  const TrainConfig& c = config.train;
  return (c.max_steps > 0 && state.step >= c.max_steps) ||
         (c.max_epochs > 0 && state.epoch >= c.max_epochs) ||
         (c.patience > 0 && state.validations_without_gain >= c.patience);
}

std::optional<score::Verdict> standing_verdict(const Config& config, const data::PreparedData& data,
                                               const TrainState& state) {
  score::VerdictMonitor monitor(verdict_options(config, data));
  monitor.restore(state.verdict);
  return monitor.verdict();
}

void Trainer::next_step() {
  const double start = monotonic_seconds();
  if (planned_epoch_ != state_.epoch) {
    plan_.emplace(lengths_, config_.batch, config_.run.seed, state_.epoch);
    planned_epoch_ = state_.epoch;
  }
  const data::Batch batch = plan_->batch(state_.batch_in_epoch);
  const int64_t step = state_.step + 1, every = config_.monitoring.layer_statistics_every;
  const bool observes = every > 0 && (step == 1 || step % every == 0);
  autograd::Profile* profile = parts_.profiler ? parts_.profiler->begin_step(step) : nullptr;
  const StepGradient gradient = gradient_step_.run(batch, step, observes, profile);

  StepRecord record{.step = step,
                    .epoch = state_.epoch,
                    .learning_rate = optim::learning_rate(
                        config_.optimizer, parts_.adam.updates() + 1, config_.train.max_steps),
                    .source_tokens = batch.source_tokens,
                    .target_tokens = batch.target_tokens,
                    .sentences = int64_t(batch.pairs.size()),
                    .timing = {},
                    .ranks = {}};
  state_.step = step;
  update(gradient, record.learning_rate, record, profile);
  if (profile != nullptr) parts_.profiler->end_step();
  record.timing = gradient_step_.timing();
  record.ranks = gradient_step_.ranks();
  advance(batch);
  record.step_seconds = monotonic_seconds() - start;
  record.flops_utilization = model::training_flops(parts_.model.config(), lengths_, batch.pairs) /
                             record.step_seconds / peak_flops_;
  parts_.recorder.memory(gradient_step_.memory_bytes());
  parts_.recorder.step(record);
  parts_.watchdog.progress(step);
}

// The device decides whether to update, by what all ranks hold the same bits of, so all of them
// skip or none. The host reads what came of it once, after the update is queued.
void Trainer::update(const StepGradient& gradient, double learning_rate, StepRecord& record,
                     autograd::Profile* profile) {
  Context& context = parts_.device.compute();
  const tensor::Event begin = context.record();
  if (profile != nullptr) profile->begin();
  context.run(&kernels::Kernels::step_control, {.losses = gradient.losses,
                                                .squares = probe_.squared_norms(gradient.gradient),
                                                .control = control_,
                                                .tokens = double(record.target_tokens),
                                                .clip_norm = config_.optimizer.clip_norm});
  if (profile != nullptr) profile->end("gradient norm", autograd::Phase::kUpdate);
  parts_.adam.step(gradient.gradient, control_, learning_rate);
  if (profile != nullptr) profile->end("adam", autograd::Phase::kUpdate);
  parts_.sharding.gather_weights();
  if (profile != nullptr && parts_.sharding.is_sharded())
    profile->end("gather weights", autograd::Phase::kUpdate);
  const tensor::Event end = context.record();

  std::array<double, kernels::kControlValues> control{};
  context.download(std::span<double>(control), control_);
  record.loss = control[0];
  record.nll = control[1];
  record.gradient_norm = control[2];
  record.is_skipped = control[4] != 0;
  record.optimizer_seconds = seconds_between(begin, end);
  if (record.is_skipped) return skip(gradient, record);
  parts_.adam.count_update();
  if (!gradient.blocks.is_empty()) record_layers(gradient, learning_rate);
}

void Trainer::skip(const StepGradient& gradient, const StepRecord& record) {
  ++state_.skipped;
  (void)verdict_.add_nonfinite(state_.step, std::isfinite(record.loss)
                                                ? score::NonfiniteValue::kGradientNorm
                                                : score::NonfiniteValue::kLoss);
  Context& context = parts_.device.compute();
  const Tensor sums = report_.columns(0, probe_.count());
  probe_.measure(gradient.gradient, nullptr, 0, sums);
  std::vector<double> values(size_t(sums.numel()));
  context.download(std::span(values), sums);
  parts_.recorder.skipped(
      record, observe::nonfinite_blocks(parts_.model.parameters(), parts_.model.blocks(),
                                        observe::ParameterProbe::read(values)));
}

void Trainer::record_layers(const StepGradient& gradient, double learning_rate) {
  Context& context = parts_.device.compute();
  const int64_t count = block_sums(parts_);
  context.copy(report_.columns(0, count), gradient.blocks.reshaped(1, count));
  probe_.measure(gradient.gradient, &parts_.adam, learning_rate,
                 report_.columns(count, probe_.count()));
  std::vector<double> values(size_t(report_.numel()));
  context.download(std::span(values), report_);

  const std::vector<topology::BlockContext> blocks = parts_.model.blocks();
  const std::vector<observe::BlockSums> activations =
      observe::add_shards(std::span<const double>(values).first(size_t(count)),
                          config_.batch.shards, int64_t(blocks.size()));
  const std::vector<observe::ParameterStatistics> parameters = observe::parameter_statistics(
      parts_.model.parameters(), blocks,
      observe::ParameterProbe::read(std::span<const double>(values).subspan(size_t(count))));
  std::vector<LayerRecord> layers;
  for (size_t i = 0; i < blocks.size(); ++i)
    layers.push_back({.block = blocks[i],
                      .activations = observe::statistics_of(activations[i]),
                      .parameters = parameters[i]});
  parts_.recorder.layers(state_.step, layers);
}

void Trainer::advance(const data::Batch& batch) {
  state_.source_tokens += batch.source_tokens;
  state_.target_tokens += batch.target_tokens;
  state_.sentences += int64_t(batch.pairs.size());
  if (++state_.batch_in_epoch < plan_->batch_count()) return;
  state_.batch_in_epoch = 0;
  ++state_.epoch;
}

bool Trainer::wants_validation() const {
  const int64_t every = config_.train.validate_every;
  return parts_.data.valid && every > 0 && state_.step % every == 0;
}

void Trainer::validate() {
  const dist::Watchdog::Section section(parts_.watchdog, "validation",
                                        section_limit(config_, kLongestSection));
  parts_.recorder.state(monitoring::RunState::kValidate);
  const double start = monotonic_seconds();
  const Validation result = launcher::validate(parts_.model, parts_.device, *parts_.data.valid,
                                               config_.batch.micro_tokens, parts_.group);
  double bleu = std::numeric_limits<double>::quiet_NaN();
  if (config_.train.best_metric == BestMetric::kBleu)
    bleu = score_split(parts_.model, parts_.device, *parts_.data.valid, parts_.references,
                       *parts_.data.tokenizer, config_.batch.micro_tokens, parts_.group)
               .bleu;
  validated_step_ = state_.step;
  last_validation_ = result;
  last_bleu_ = bleu;
  keep_track(result, bleu);
  parts_.recorder.validation(state_.step, result, bleu, monotonic_seconds() - start);
  parts_.recorder.state(monitoring::RunState::kTrain);
}

void Trainer::keep_track(const Validation& result, double bleu) {
  std::optional<double> gain;
  if (!std::isnan(result.source_gain)) gain = result.source_gain;
  (void)verdict_.add_validation(state_.step, result.nll, gain);
  if (!wants_validation()) return;  // not state, see run()
  ++state_.validations;
  const double value = std::isnan(bleu) ? result.nll : -bleu;
  if (value < state_.best_value) {
    state_.best_value = value;
    state_.best_step = state_.step;
    state_.validations_without_gain = 0;
  } else {
    ++state_.validations_without_gain;
  }
}

// What keep_best compares: the validation of this very step, where there was one.
std::optional<checkpoint::Metric> Trainer::metric() const {
  if (!last_validation_ || validated_step_ != state_.step) return std::nullopt;
  if (config_.train.best_metric == BestMetric::kBleu)
    return checkpoint::Metric{
        .name = "validation_bleu", .value = last_bleu_, .better = checkpoint::Better::kHigher};
  if (!std::isfinite(last_validation_->nll)) return std::nullopt;
  return checkpoint::Metric{.name = "validation_loss",
                            .value = last_validation_->nll,
                            .better = checkpoint::Better::kLower};
}

bool Trainer::save() {
  const dist::Watchdog::Section section(parts_.watchdog, "save",
                                        section_limit(config_, kLongestSection));
  parts_.recorder.state(monitoring::RunState::kSave);
  state_.verdict = verdict_.state();
  const bool saves = parts_.checkpoints != nullptr;
  HostMoments moments = {.first = parts_.sharding.download(parts_.adam.first(), saves),
                         .second = parts_.sharding.download(parts_.adam.second(), saves)};
  std::string failure, path;
  if (saves) {
    try {
      parts_.recorder.sync();
      checkpoint::SavingArchive archive;
      HostCopies copies;
      state_.visit(archive, copies, moments);
      checkpoint::SaveInfo info;
      info.step = state_.step;
      info.run_id = parts_.run_id;
      info.attempt = parts_.attempt;
      info.provenance = provenance_json(config_, parts_.data, parts_.device.numerics(),
                                        parts_.group.size(), parts_.recorder.counters_json());
      info.metric = metric();
      const checkpoint::Saved saved =
          parts_.checkpoints->save(archive, info,
                                   {.keep_last = config_.checkpoint.keep_last,
                                    .keep_best = config_.checkpoint.keep_best,
                                    .keep_every = config_.checkpoint.keep_every});
      parts_.recorder.saved(state_.step, saved.path.string(), saved.bytes, saved.seconds);
    } catch (const IoError& error) {
      failure = error.what();
      parts_.recorder.save_failed(state_.step, failure);
    }
  }
  parts_.group.broadcast(failure, 0);
  last_save_seconds_ = monotonic_seconds();
  if (failure.empty()) saved_step_ = state_.step;
  save_failure_ = failure;
  parts_.recorder.state(monitoring::RunState::kTrain);
  return failure.empty();
}

// A signal on any rank stops all of them after the same step; time is rank 0's.
Trainer::Wishes Trainer::agree() {
  const CheckpointConfig& c = config_.checkpoint;
  const bool step_is_due = c.every_steps > 0 && state_.step % c.every_steps == 0;
  const bool time_is_due = parts_.group.rank() == 0 && c.every_minutes > 0 &&
                           monotonic_seconds() - last_save_seconds_ >= 60 * c.every_minutes;
  const int64_t wish = requested_stop() != 0 ? 2 : time_is_due ? 1 : 0;
  const int64_t most = parts_.group.all_reduce_max(wish);
  return {.stop = most == 2, .save = most == 1 || step_is_due};
}

}  // namespace fathom::launcher
