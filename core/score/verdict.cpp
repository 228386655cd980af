#include "core/score/verdict.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/base/error.h"

namespace fathom::score {
namespace {

constexpr int64_t kEarliestDefault = 1000;  // updates

const char* name_of(NonfiniteValue value) {
  switch (value) {
    case NonfiniteValue::kLoss:
      return "training loss";
    case NonfiniteValue::kGradientNorm:
      return "gradient norm";
    case NonfiniteValue::kValidationLoss:
      return "validation loss";
    case NonfiniteValue::kSourceGain:
      return "source gain";
  }
  fail("verdict: unknown value number ", int(value));
}

}  // namespace

const char* to_string(VerdictStatus status) {
  switch (status) {
    case VerdictStatus::kOk:
      return "ok";
    case VerdictStatus::kNan:
      return "nan";
    case VerdictStatus::kPlateau:
      return "plateau";
    case VerdictStatus::kBlind:
      return "blind";
    case VerdictStatus::kRelapse:
      return "relapse";
    case VerdictStatus::kDegenerate:
      return "degenerate";
  }
  fail("verdict: unknown status number ", int(status));
}

int64_t default_verdict_after(int64_t warmup_steps, int64_t max_steps) {
  const int64_t warmup = warmup_steps > 0 ? warmup_steps : 4000;
  const int64_t long_run = std::max<int64_t>(2 * warmup, 8000);
  const int64_t after = max_steps > 0 ? std::min(long_run, max_steps / 2) : long_run;
  return std::max({after, warmup_steps, kEarliestDefault});
}

std::string describe(const Verdict& verdict) {
  return join(to_string(verdict.status), ": ", verdict.reason);
}

VerdictMonitor::VerdictMonitor(const VerdictOptions& options) : options_(options) {
  require(std::isfinite(options.unigram_entropy) && options.unigram_entropy > 0,
          "verdict: got unigram entropy ", options.unigram_entropy,
          " nats, expected a positive finite number; is the training set empty?");
  require(options.after >= 0, "verdict: got after = ", options.after, ", expected 0 or more steps");
  require(options.relapse_validations >= 1 && options.relapse_steps >= 1 &&
              options.nonfinite_limit >= 1,
          "verdict: got relapse_validations ", options.relapse_validations, ", relapse_steps ",
          options.relapse_steps, ", nonfinite_limit ", options.nonfinite_limit,
          ", expected 1 or more each");
}

std::optional<Verdict> VerdictMonitor::add_validation(int64_t step, double nll,
                                                      std::optional<double> source_gain) {
  if (is_nan()) return verdict();
  require(state_.validations == 0 || step > state_.last_step, "verdict: got a validation at step ",
          step, " after one at step ", state_.last_step, ", expected a later one");
  ++state_.validations;
  state_.last_step = step;
  if (!options_.encoder_decoder) source_gain.reset();
  const VerdictStatus status = judge(step, nll, source_gain);
  if (status == VerdictStatus::kNan) {
    decide(status, step, 0);
  } else if (status != VerdictStatus::kOk) {
    decide(status, step, status == VerdictStatus::kBlind ? *source_gain : nll);
  }
  return verdict();
}

// The order of the checks is the order of the statuses: the first that applies wins.
VerdictStatus VerdictMonitor::judge(int64_t step, double nll, std::optional<double> source_gain) {
  const bool has_gain = source_gain.has_value();
  if (!std::isfinite(nll) || (has_gain && std::isnan(*source_gain))) {
    const auto value =
        std::isfinite(nll) ? NonfiniteValue::kSourceGain : NonfiniteValue::kValidationLoss;
    state_.nonfinite_value = int64_t(value);
    state_.nonfinite_steps = 1;
    return VerdictStatus::kNan;
  }
  if (verdict()) return VerdictStatus::kOk;  // the first stands, and the numbers it was made with
  track_best(step, nll);
  if (!options_.judges_learning) return VerdictStatus::kOk;
  if (step >= options_.after) {
    if (state_.best_nll > options_.plateau_fraction * options_.unigram_entropy)
      return VerdictStatus::kPlateau;
    if (has_gain && *source_gain < options_.least_source_gain) return VerdictStatus::kBlind;
  }
  return is_relapse(step) ? VerdictStatus::kRelapse : VerdictStatus::kOk;
}

void VerdictMonitor::track_best(int64_t step, double nll) {
  if (state_.validations == 1 || nll < state_.best_nll) {
    state_.best_nll = nll;
    state_.best_step = step;
  }
  if (nll > state_.best_nll + options_.relapse_rise) {
    if (state_.raised_validations++ == 0) state_.raised_since = step;
  } else {
    state_.raised_validations = 0;
  }
}

bool VerdictMonitor::is_relapse(int64_t step) const {
  if (state_.raised_validations == 0) return false;
  return state_.raised_validations >= options_.relapse_validations ||
         step - state_.raised_since >= options_.relapse_steps;
}

std::optional<Verdict> VerdictMonitor::add_nonfinite(int64_t step, NonfiniteValue value) {
  if (is_nan()) return verdict();
  const bool follows = state_.nonfinite_steps > 0 && step == state_.nonfinite_step + 1;
  state_.nonfinite_steps = follows ? state_.nonfinite_steps + 1 : 1;
  state_.nonfinite_step = step;
  state_.nonfinite_value = int64_t(value);
  if (state_.nonfinite_steps >= options_.nonfinite_limit) decide(VerdictStatus::kNan, step, 0);
  return verdict();
}

Verdict VerdictMonitor::finish(std::optional<double> bleu, std::optional<double> reference_bleu) {
  if (const auto failed = verdict()) return *failed;
  if (bleu) {
    state_.reference = reference_bleu.value_or(0.0);
    const double least =
        std::max(options_.least_bleu, options_.least_bleu_ratio * state_.reference);
    state_.value = *bleu;
    // Written so that a BLEU of NaN fails.
    if (!(*bleu >= least)) decide(VerdictStatus::kDegenerate, state_.last_step, *bleu);
  }
  if (const auto failed = verdict()) return *failed;
  std::string text = "The run ended normally";
  if (state_.validations > 0)
    text += fmt::format("; best validation loss {:.3f} nats at step {}", state_.best_nll,
                        state_.best_step);
  if (bleu) text += fmt::format("; test BLEU {:.2f}", *bleu);
  return {VerdictStatus::kOk, text + ".", state_.last_step};
}

std::optional<Verdict> VerdictMonitor::verdict() const {
  const auto status = VerdictStatus(state_.status);
  if (status == VerdictStatus::kOk) return std::nullopt;
  return Verdict{status, reason(), state_.step};
}

void VerdictMonitor::restore(const VerdictState& state) {
  const auto last = int64_t(VerdictStatus::kDegenerate);
  require<CheckpointError>(state.status >= 0 && state.status <= last,
                           "verdict: the saved state has status ", state.status, ", expected 0 to ",
                           last);
  state_ = state;
  if (would_not_fall()) decide(VerdictStatus::kOk, 0, 0);
}

bool VerdictMonitor::would_not_fall() const {
  const auto status = VerdictStatus(state_.status);
  const bool is_by_after = status == VerdictStatus::kPlateau || status == VerdictStatus::kBlind;
  const bool is_learning = is_by_after || status == VerdictStatus::kRelapse;
  return (is_by_after && state_.step < options_.after) ||
         (is_learning && !options_.judges_learning);
}

void VerdictMonitor::decide(VerdictStatus status, int64_t step, double value) {
  state_.status = int64_t(status);
  state_.step = step;
  state_.value = value;
}

// A function of state and options alone, so a resumed run gives the same sentence.
std::string VerdictMonitor::reason() const {
  const VerdictState& s = state_;
  switch (VerdictStatus(s.status)) {
    case VerdictStatus::kNan:
      return fmt::format("The {} was not finite at step {} ({} in a row).",
                         name_of(NonfiniteValue(s.nonfinite_value)), s.step, s.nonfinite_steps);
    case VerdictStatus::kPlateau:
      return fmt::format(
          "The best validation loss up to step {} is {:.3f} nats (step {}), above {:.3f} = {} x "
          "the unigram entropy {:.3f}.",
          s.step, s.best_nll, s.best_step, options_.plateau_fraction * options_.unigram_entropy,
          options_.plateau_fraction, options_.unigram_entropy);
    case VerdictStatus::kBlind:
      return fmt::format(
          "Exchanging the sources between sentences costs {:.3f} nats at step {}, under {}: the "
          "decoder does not read the source.",
          s.value, s.step, options_.least_source_gain);
    case VerdictStatus::kRelapse:
      return fmt::format(
          "The validation loss is {:.3f} nats at step {} and has stayed more than {:.1f} nats "
          "above the best, {:.3f} at step {}, for {} validations and {} steps.",
          s.value, s.step, options_.relapse_rise, s.best_nll, s.best_step, s.raised_validations,
          s.step - s.raised_since);
    case VerdictStatus::kDegenerate:
      if (s.value >= options_.least_bleu)
        return fmt::format("The test BLEU is {:.2f}, under {} x the reference topology's {:.2f}.",
                           s.value, options_.least_bleu_ratio, s.reference);
      return fmt::format("The test BLEU is {:.2f}, under {:.2f}.", s.value, options_.least_bleu);
    case VerdictStatus::kOk:
      break;
  }
  fail("verdict: unknown status number ", s.status);
}

}  // namespace fathom::score
