#include "launcher/train/ending.h"

#include "core/base/error.h"

namespace fathom::launcher {
namespace {

constexpr int64_t kMostSkippedInARow = 10;  // non-finite updates, then the run has failed

TrainResult completion(const TrainConfig& c, const TrainState& state) {
  if (c.max_steps > 0 && state.step >= c.max_steps)
    return {.reason = join("reached train.max_steps ", c.max_steps), .cause = "max_steps"};
  if (c.max_epochs > 0 && state.next.epoch >= c.max_epochs)
    return {.reason = join("reached train.max_epochs ", c.max_epochs), .cause = "max_epochs"};
  return {.reason = join("no better validation for ", c.patience,
                         " in a row (train.patience); best at step ", state.best_step),
          .cause = "patience"};
}

std::string remedy(const score::Verdict& verdict) {
  switch (verdict.status) {
    case score::VerdictStatus::kPlateau:
    case score::VerdictStatus::kBlind:
      return " To go on, run the same command with a larger verdict.after, or with "
             "verdict.action=report.";
    case score::VerdictStatus::kRelapse:
      return " To go on, run the same command with verdict.action=report.";
    case score::VerdictStatus::kNan:
      return " Start anew (--overwrite), or go on from an earlier checkpoint (--resume PATH), with "
             "a lower optimizer.learning_rate or with optimizer.clip_norm (--allow-change).";
    case score::VerdictStatus::kDegenerate:
    case score::VerdictStatus::kOk:
      break;
  }
  return "";
}

}  // namespace

const char* status_of(StopKind kind) {
  switch (kind) {
    case StopKind::kCompleted:
      return "completed";
    case StopKind::kSignalled:
      return "interrupted";
    case StopKind::kFailed:
      break;
  }
  return "failed";
}

int exit_code_of(StopKind kind) {
  switch (kind) {
    case StopKind::kCompleted:
      return int(ExitCode::kDone);
    case StopKind::kSignalled:
      return int(ExitCode::kRequeue);
    case StopKind::kFailed:
      break;
  }
  return int(ExitCode::kTraining);
}

bool is_complete(const Config& config, const TrainState& state) {
  const TrainConfig& c = config.train;
  return (c.max_steps > 0 && state.step >= c.max_steps) ||
         (c.max_epochs > 0 && state.next.epoch >= c.max_epochs) ||
         (c.patience > 0 && state.validations_without_gain >= c.patience);
}

bool ends_run(const Config& config, const score::Verdict& verdict) {
  return verdict.status == score::VerdictStatus::kNan ||
         config.verdict.action == VerdictAction::kStop;
}

TrainResult result_of(const Config& config, const TrainState& state,
                      const score::Verdict& verdict) {
  const bool is_ok = verdict.status == score::VerdictStatus::kOk;
  if (!is_ok && ends_run(config, verdict))
    return {.kind = StopKind::kFailed,
            .reason = describe(verdict) + remedy(verdict),
            .cause = to_string(verdict.status)};
  TrainResult result = completion(config.train, state);
  if (!is_ok) result.verdict = describe(verdict);
  return result;
}

score::VerdictMonitor make_verdict(const Config& config, const data::PreparedData& data,
                                   const score::VerdictState& state) {
  const int64_t after =
      config.verdict.after > 0
          ? config.verdict.after
          : score::default_verdict_after(config.optimizer.warmup_steps, config.train.max_steps);
  score::VerdictMonitor monitor(
      {.unigram_entropy = data.unigram_entropy,
       .after = after,
       .encoder_decoder = config.model.kind == model::ModelKind::kEncoderDecoder,
       .nonfinite_limit = kMostSkippedInARow,
       .judges_learning = config.verdict.action != VerdictAction::kOff});
  monitor.restore(state);
  return monitor;
}

}  // namespace fathom::launcher
