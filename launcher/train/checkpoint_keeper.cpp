#include "launcher/train/checkpoint_keeper.h"

#include <chrono>
#include <utility>

#include "core/base/clock.h"
#include "launcher/train/time_limits.h"

namespace fathom::launcher {
namespace {

checkpoint::Retention retention(const CheckpointConfig& c) {
  return {.keep_last = c.keep_last, .keep_best = c.keep_best, .keep_every = c.keep_every};
}

}  // namespace

CheckpointKeeper::CheckpointKeeper(KeeperParts parts, int64_t saved_step)
    : parts_(std::move(parts)),
      saved_step_(saved_step),
      is_unsaved_branch_(parts_.is_branch),
      last_begin_(monotonic_seconds()) {
  if (parts_.directory != nullptr) writer_.emplace("checkpoint");
}

bool CheckpointKeeper::is_due(const TrainState& state) const {
  const CheckpointConfig& c = parts_.config.checkpoint;
  const bool is_first = is_unsaved_branch_ && stage_ == Stage::kIdle;
  return is_first || (c.every_steps > 0 && state.step % c.every_steps == 0);
}

bool CheckpointKeeper::is_due_by_time() const {
  const double minutes = parts_.config.checkpoint.every_minutes;
  return parts_.directory != nullptr && minutes > 0 &&
         monotonic_seconds() - last_begin_ >= 60 * minutes;
}

void CheckpointKeeper::save(const TrainState& state,
                            const std::optional<checkpoint::ValidationResult>& validation) {
  wait_for_commit(monitoring::RunState::kTrain);
  last_begin_ = monotonic_seconds();
  step_ = state.step;
  parts_.snapshot.begin();
  if (parts_.directory != nullptr) {
    TrainState copy = state;
    copy.visit(archive_.emplace());
    parts_.snapshot.visit(*archive_);
    info_ = {};
    info_.step = state.step;
    info_.run_id = parts_.run_id;
    info_.attempt = parts_.attempt;
    info_.provenance = parts_.provenance();
    info_.validation = validation;
  }
  stage_ = Stage::kSnapshot;
  wait_seconds_ = monotonic_seconds() - last_begin_;
}

void CheckpointKeeper::before_update() {
  if (stage_ != Stage::kSnapshot) return;
  const double start = monotonic_seconds();
  parts_.snapshot.hold_updates();
  wait_seconds_ += monotonic_seconds() - start;  // a device of its own does not keep the host
}

void CheckpointKeeper::after_update() {
  if (stage_ == Stage::kSnapshot) start_commit();
}

void CheckpointKeeper::start_commit() {
  stage_ = Stage::kCommit;
  if (parts_.directory == nullptr) return;
  commit_ = writer_->run([this] {
    // What the histories say up to here counts with this checkpoint.
    return parts_.directory->save(*archive_, info_, retention(parts_.config.checkpoint),
                                  [this] { parts_.observer.sync(); });
  });
}

void CheckpointKeeper::write_now() {
  if (stage_ != Stage::kSnapshot) return;
  const double start = monotonic_seconds();
  parts_.snapshot.synchronise();
  start_commit();
  wait_seconds_ += monotonic_seconds() - start;
}

void CheckpointKeeper::add_validation(const TrainState& state,
                                      const checkpoint::ValidationResult& validation,
                                      bool is_best) {
  if (step_ == state.step) wait_for_commit(monitoring::RunState::kTrain);
  if (saved_step_ == state.step)
    lay_beside(validation);
  else if (is_best && parts_.config.checkpoint.keep_best > 0)
    save(state, validation);
}

// The run needs it no more than the hints: the next start validates again where it is missing. What
// retention could not do is told by the next save, which tries again.
void CheckpointKeeper::lay_beside(const checkpoint::ValidationResult& validation) {
  if (parts_.directory == nullptr) return;
  try {
    (void)parts_.directory->add_validation(saved_step_, validation,
                                           retention(parts_.config.checkpoint));
  } catch (const IoError& error) {
    parts_.observer.save_failed(saved_step_, error.what());
  } catch (const CheckpointError& error) {
    parts_.observer.save_failed(saved_step_, error.what());
  }
}

CommitOutcome CheckpointKeeper::poll() {
  using namespace std::chrono_literals;
  if (!commit_.valid() || commit_.wait_for(0s) != std::future_status::ready)
    return CommitOutcome::kNone;
  try {
    report_ = commit_.get();
    return CommitOutcome::kSaved;
  } catch (const IoError& error) {
    failure_ = error.what();
    return CommitOutcome::kFailed;
  }
}

void CheckpointKeeper::settle(CommitOutcome outcome) {
  if (outcome == CommitOutcome::kNone) return;
  stage_ = Stage::kIdle;
  if (outcome == CommitOutcome::kSaved) {
    failure_.clear();
    saved_step_ = step_;
    is_unsaved_branch_ = false;
    std::vector<std::string> set_aside;
    for (const auto& path : report_.set_aside) set_aside.push_back(path.string());
    parts_.observer.saved({.step = step_,
                           .path = report_.path.string(),
                           .bytes = report_.bytes,
                           .seconds = report_.seconds,
                           .wait_seconds = wait_seconds_,
                           .warnings = report_.warnings,
                           .set_aside = std::move(set_aside)});
  } else {
    parts_.group.broadcast(failure_, 0);
    parts_.observer.save_failed(step_, failure_);
  }
}

void CheckpointKeeper::wait_for_commit(monitoring::RunState then) {
  if (stage_ == Stage::kIdle) return;
  const dist::Watchdog::Section section(parts_.watchdog, "save", section_limit(parts_.config));
  parts_.observer.state_changed(monitoring::RunState::kSave);
  write_now();
  const double start = monotonic_seconds();
  if (commit_.valid()) commit_.wait();
  wait_seconds_ += monotonic_seconds() - start;
  settle(agree(parts_.group, {.commit = poll()}).commit);
  parts_.observer.state_changed(then);
}

void CheckpointKeeper::finish(const TrainState& state,
                              const std::optional<checkpoint::ValidationResult>& validation) {
  wait_for_commit(monitoring::RunState::kStopping);
  if (saved_step_ != state.step || is_unsaved_branch_) save(state, validation);
  wait_for_commit(monitoring::RunState::kStopping);
  if (saved_step_ != state.step || is_unsaved_branch_)
    fail<IoError>("the last checkpoint, of step ", state.step, ", could not be written: ", failure_,
                  "; fix that and run the same command: the run goes on from the one before");
}

}  // namespace fathom::launcher
