#include "launcher/train/training_run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <thread>
#include <utility>

#include "launcher/config/show.h"
#include "launcher/cores.h"
#include "launcher/devices.h"
#include "launcher/provenance.h"
#include "launcher/signals.h"
#include "launcher/train/agreement.h"
#include "launcher/train/profile_model.h"
#include "launcher/train/recall_validation.h"
#include "launcher/train/run_config.h"
#include "launcher/train/run_data.h"
#include "launcher/train/time_limits.h"
#include "monitoring/history.h"

namespace fathom::launcher {
namespace {

StepOptions step_options(const Config& c, const Sharding& sharding, int group_size, int cores,
                         dist::Watchdog& watchdog) {
  const bool has_room = group_size > 1 && cores > threads_per_rank(c, cores);
  const dist::Overlap by_itself = has_room ? dist::Overlap::kOn : dist::Overlap::kOff;
  return {.reducer = {.reduction = c.dist.reduction,
                      .overlap = c.dist.overlap.value_or(by_itself),
                      .outcome = sharding.outcome(),
                      .shards = int(c.batch.shards)},
          .micro_tokens = c.batch.micro_tokens,
          .label_smoothing = c.optimizer.label_smoothing,
          .seed = c.run.seed,
          .on_micro_batch = [&watchdog] { watchdog.progress(); }};
}

// Before the histories are opened, which forget the steps that are done again.
RunStart start_of(const Config& config, const Resume& resume, const data::PreparedData& data,
                  const std::string& init_from, int64_t step, int ranks) {
  RunStart start{.step = step,
                 .is_resumed = resume.resumes,
                 .ranks = ranks,
                 .attempt = resume.attempt,
                 .run_id = resume.run_id,
                 .init_from = init_from,
                 .from = {},
                 .lost_steps = 0,
                 .changes = resume.changes,
                 .rejected = resume.rejected,
                 .dropped = {}};
  if (resume.checkpoint) {
    const std::filesystem::path history =
        std::filesystem::path(config.run.directory) / "metrics.jsonl";
    start.from = resume.checkpoint->path().string();
    start.lost_steps = std::max<int64_t>(0, monitoring::last_step(history) - step);
  }
  if (!resume.resumes) start.dropped = data.reports.at("train").counts;
  return start;
}

}  // namespace

TrainingRun::TrainingRun(Config config, const RunOptions& options, dist::Communicator& group)
    : group_(group),
      options_(options),
      log_({.level = options.log_level, .rank = group.rank(), .size = group.size()}),
      config_(for_these_ranks(std::move(config), group.size(), options.cores)),
      watchdog_(make_watchdog(config_, group)),
      set_up_(std::in_place, watchdog_, "set-up", section_limit(config_, std::chrono::hours(6))),
      directory_(open_run_directory(config_, group.rank(), log_)),
      resume_(decide_resume(config_, options, directory_, group, log_)),
      donor_(open_donor(resume_.resumes || group.rank() != 0 ? "" : options_.init_from, config_)),
      tokenizer_(settle_tokenizer(config_, resume_.before, resumed(), donor(), group)),
      data_(prepare_data(config_, tokenizer_, group, log_)) {
  compare_texts();
  const data::PairLengths lengths = data_.train.lengths();
  (void)data::EpochPlan(lengths, config_.batch, config_.run.seed, 0);  // refuses what cannot fit
  device_ = make_device(config_);
  if (resume_.checkpoint) check_same_numerics(*resume_.checkpoint, device_->numerics(), log_);
  check_ranks_agree(config_, data_, device_->numerics(), group);
  config_.model.vocabulary_size = data_.tokenizer->size();
  if (!tokenizer_.empty())
    log_.info(join("the tokenizer was given, not learned: it has ", data_.tokenizer->size(),
                   " entries; data.vocabulary_size ", config_.data.vocabulary_size,
                   " is not used"));

  model_ = std::make_unique<model::Transformer>(config_.model, *device_, compute_type(config_));
  sharding_.emplace(config_.dist, model_->parameters(), group);
  adam_.emplace(config_.optimizer, sharding_->slices());
  fill_model();
  sharding_->keep_own_masters();
}

void TrainingRun::compare_texts() {
  if (resume_.checkpoint && check_same_data(*resume_.checkpoint, data_, options_.allow_change)) {
    resume_.has_other_validation = true;
    resume_.changes.push_back({.step = resume_.checkpoint->manifest().step,
                               .key = "data.valid",
                               .old_value = resume_.before->data.valid,
                               .new_value = config_.data.valid});
  }
  resume_.has_other_validation = group_.all_reduce_max(resume_.has_other_validation) == 1;
}

void TrainingRun::fill_model() {
  if (resume_.resumes) {
    load_state(resumed(), *model_, *adam_, *sharding_, state_, group_);
    model_->set_update(state_.step);
    state_.next = position_in(config_, *resume_.before, data_, state_.next);
    const bool has_other_metric = resume_.before->train.best_metric != config_.train.best_metric;
    if (has_other_metric || resume_.has_other_validation) state_.forget_best();
    if (resume_.has_other_validation) state_.verdict.forget_best();
    if (!data_.valid) state_.validation_due = 0;
    known_ = recall_validation(resumed(), config_, data_, state_, group_, log_);
    return;
  }
  model_->initialise(config_.run.seed);
  if (options_.init_from.empty()) return profile_model(config_, data_.train, *model_, group_);
  if (donor_)
    log_.info(join("weights and tokenizer from ", donor_->path().string(), ", step ",
                   donor_->manifest().step));
  load_weights(donor(), *model_, group_);
  donor_.reset();  // its memory is no longer needed
}

std::optional<TrainResult> TrainingRun::earlier_end() const {
  if (!resume_.resumes || resume_.is_branch) return std::nullopt;
  LastResult last;
  if (group_.rank() == 0) last = last_result(config_);
  group_.broadcast(last.status, 0);
  last.step = group_.all_reduce_max(last.step);
  if (last.step != state_.step) return std::nullopt;
  TrainState state = state_;
  score::VerdictMonitor verdict = make_verdict(config_, data_, state.verdict);
  if (state.validation_due > 0) {
    if (!known_) return std::nullopt;
    count_validation(*known_, verdict, state);
  }
  const TrainResult result =
      result_of(config_, state, verdict.verdict().value_or(score::Verdict{}));
  if (last.status != status_of(result.kind)) return std::nullopt;
  if (result.kind == StopKind::kFailed) {
    log_result(result);
  } else {
    if (!is_complete(config_, state)) return std::nullopt;
    log_.info(join("already complete at step ", state_.step,
                   "; raise train.max_steps (or train.max_epochs, train.patience) to go on"));
  }
  return result;
}

void TrainingRun::open() {
  references_ = validation_references(config_, log_);
  if (resume_.replaces) {
    const std::filesystem::path aside = replace_run_directory(directory_, config_, log_);
    log_.info(join("--overwrite: the run that was here is now ", aside.string()));
  }
  const RunStart start =
      start_of(config_, resume_, data_, options_.init_from, state_.step, group_.size());
  sinks_.emplace(config_, resume_.start, resume_.resumes ? state_.step : -1, resume_.is_branch,
                 group_.rank(), log_);
  if (group_.rank() == 0) {  // the address that is served was the last thing to refuse the run
    begin_start(resume_, directory_, config_);
    write_config(config_);
    write_tokenizer(config_, data_);
    directory_.new_files->keep();
    log_.also_to(std::filesystem::path(config_.run.directory) / "log.txt");
  }
  sinks_->observer().started(start);
  log_start(start);
  if (options_.profile && group_.rank() == 0)
    profiler_.emplace(device_->compute(),
                      std::filesystem::path(config_.run.directory) / "trace.json");
  make_loop();
  resume_.checkpoint.reset();  // its memory is no longer needed
  set_up_.reset();
}

void TrainingRun::log_start(const RunStart& start) const {
  log_.info("run directory: " + std::filesystem::absolute(config_.run.directory).string());
  std::string changed;
  for (const Difference& d : differences(Config(), config_))
    changed += join(changed.empty() ? "" : ", ", d.key, " ", d.new_value);
  log_.note("other than the defaults: " + changed);
  log_.info(join(config_.model.topology, ": ", model_->parameters().all().size(), " tensors, ",
                 model_->parameters().size(), " parameters; ", data_.train.size(),
                 " training pairs, ", data_.train.target_tokens(),
                 " target tokens, unigram entropy ", data_.unigram_entropy,
                 " nats; ranks: ", start.ranks, ", threads of each: ", config_.train.threads,
                 ", shards: ", config_.batch.shards));
  if (start.is_resumed) {
    log_.info(join("resumed from step ", start.step, ", ", start.from));
    for (const ConfigChange& c : changes_at(start.changes, start.step))
      log_.info(join(c.key, ": ", c.old_value, " up to step ", c.step, ", ", c.new_value,
                     " from there on, as --allow-change says"));
  } else if (!start.dropped.empty()) {
    log_.info("left out of training: " + data::describe(start.dropped));
  }
}

void TrainingRun::make_loop() {
  const bool is_root = group_.rank() == 0;
  gradients_.emplace(*model_, *device_, data_.train, group_, sharding_->ownership(),
                     step_options(config_, *sharding_, group_.size(), options_.cores, watchdog_));
  probe_.emplace(sharding_->slices(), sharding_->chunk_gather());
  updater_.emplace(*device_, *adam_, *sharding_, *probe_, config_.optimizer.clip_norm);
  layers_.emplace(*model_, *adam_, *probe_, config_.batch.shards);
  validator_.emplace(config_, data_, references_, *model_, *device_, group_);
  if (known_) validator_->recall(*known_);
  snapshot_.emplace(model_->parameters(), *adam_, *sharding_, is_root);
  keeper_.emplace(
      KeeperParts{.config = config_,
                  .directory = directory_.checkpoints ? &*directory_.checkpoints : nullptr,
                  .snapshot = *snapshot_,
                  .group = group_,
                  .watchdog = watchdog_,
                  .observer = sinks_->observer(),
                  .provenance =
                      [this] {
                        return provenance_json(config_, resume_.changes, data_, device_->numerics(),
                                               group_.size());
                      },
                  .run_id = resume_.run_id,
                  .attempt = resume_.attempt,
                  .is_branch = resume_.is_branch},
      state_.step > 0 ? state_.step : -1);
  loop_.emplace(LoopParts{.config = config_,
                          .data = data_,
                          .group = group_,
                          .watchdog = watchdog_,
                          .model = *model_,
                          .adam = *adam_,
                          .gradients = *gradients_,
                          .updater = *updater_,
                          .layers = *layers_,
                          .validator = *validator_,
                          .keeper = *keeper_,
                          .observer = sinks_->observer(),
                          .profiler = profiler_ ? &*profiler_ : nullptr},
                state_);
}

void TrainingRun::finish(const TrainResult& result) {
  if (profiler_) profiler_->finish(std::cerr);
  RunEnd end = {.status = status_of(result.kind),
                .reason = result.reason,
                .cause = result.cause,
                .step = loop_->state().step,
                .validation = {},
                .verdict = result.verdict};
  if (result.validation) end.validation = result.validation->result;
  sinks_->observer().finished(end);
  log_result(result);
}

void TrainingRun::abandon(const std::string& status, const std::string& reason) {
  log_.note(reason);
  try {
    if (directory_.lock && directory_.lock->is_owner())
      sinks_->observer().finished({.status = status,
                                   .reason = reason,
                                   .cause = "error",
                                   .step = loop_->state().step,
                                   .validation = {}});
  } catch (const Error&) {
    // The disk may be what failed; the error that ends the run is the first one.
  }
}

void TrainingRun::linger(const TrainResult& result) {
  const std::chrono::duration<double> seconds(config_.monitoring.linger_seconds);
  if (result.kind == StopKind::kSignalled || config_.monitoring.listen == "off") return;
  const dist::Watchdog::Section section(watchdog_, "lingering", seconds + std::chrono::minutes(1));
  const auto end = std::chrono::steady_clock::now() + seconds;
  while (std::chrono::steady_clock::now() < end && requested_stop() == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

void TrainingRun::log_result(const TrainResult& result) const {
  if (group_.rank() != 0) return;
  const int64_t step = loop_ ? loop_->state().step : state_.step;
  const bool is_interrupted = result.kind == StopKind::kSignalled;
  const std::string line =
      join("fathom train: ", status_of(result.kind), " at step ", step, ": ", result.reason,
           is_interrupted ? "; saved, run the same command to go on" : "");
  log_.note(line);
  if (result.kind == StopKind::kCompleted && !log_.shows(monitoring::LogLevel::kInfo)) return;
  std::cerr << line + "\n" << std::flush;
}

}  // namespace fathom::launcher
