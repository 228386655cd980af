// Does a training run count as failed, and since which update? The rules of the result tables
// (docs/quickstart.md): the first status that applies, decided on validation numbers in nats per
// target token without label smoothing. The first verdict but `ok` stands, though `nan` replaces
// the others.
//
//   nan         non-finite numbers `nonfinite_limit` updates in a row, or a non-finite validation
//   plateau     from update `after` on: best NLL > plateau_fraction H1, the unigram level
//   blind       from update `after` on: source gain < least_source_gain; reads no source
//   relapse     NLL > best + relapse_rise for relapse_validations validations or relapse_steps
//               updates
//   degenerate  ended normally, but BLEU < least_bleu or < least_bleu_ratio x the reference's
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fathom::score {

enum class VerdictStatus { kOk, kNan, kPlateau, kBlind, kRelapse, kDegenerate };
enum class NonfiniteValue { kLoss, kGradientNorm, kValidationLoss, kSourceGain };

[[nodiscard]] const char* to_string(VerdictStatus status);

struct VerdictOptions {
  double unigram_entropy = 0;   // H1: nats per target token of the training set, EOS included
  int64_t after = 8000;         // update from which plateau and blind are judged
  bool encoder_decoder = true;  // a decoder-only model is not judged for `blind`
  double plateau_fraction = 0.9;
  double least_source_gain = 0.1;  // nats
  double relapse_rise = 1.0;       // nats
  int64_t relapse_validations = 3;
  int64_t relapse_steps = 5000;
  int64_t nonfinite_limit = 1;  // updates in a row
  bool judges_learning = true;  // false: only `nan` is judged
  double least_bleu = 1.0;
  double least_bleu_ratio = 0.5;
};

// min(max(2 W, 8000), half of max_steps) with W = warmup_steps, or 4000 if there is no warm-up;
// max_steps 0 means unlimited. But never before the warm-up is over, nor before step 1000: a short
// trial run is not judged.
[[nodiscard]] int64_t default_verdict_after(int64_t warmup_steps, int64_t max_steps);

struct Verdict {
  VerdictStatus status = VerdictStatus::kOk;
  std::string reason;  // one sentence with the numbers
  int64_t step = 0;    // the update at which it was decided
};

// Everything a checkpoint must store; finite numbers only, so any format can hold it.
struct VerdictState {
  int64_t validations = 0;
  int64_t last_step = 0;  // of the last validation
  double best_nll = 0;    // meaningless while validations is 0
  int64_t best_step = 0;
  int64_t raised_validations = 0;  // in a row above best + rise
  int64_t raised_since = 0;        // update of the first of them
  int64_t nonfinite_steps = 0;     // in a row
  int64_t nonfinite_step = 0;      // the last of them
  int64_t nonfinite_value = 0;     // NonfiniteValue
  int64_t status = 0;              // VerdictStatus
  int64_t step = 0;                // of the verdict
  double value = 0;                // that broke the rule
  double reference = 0;            // the BLEU it was compared with; 0: none

  // The validations so far were of another text. A verdict that has fallen stands.
  void forget_best() { validations = raised_validations = 0; }
};

// "plateau: the best validation loss ..."
[[nodiscard]] std::string describe(const Verdict& verdict);

class VerdictMonitor {
 public:
  // Throws InvalidArgument unless unigram_entropy is finite and positive and `after` and the limits
  // are not negative.
  explicit VerdictMonitor(const VerdictOptions& options);

  // A validation at `step`. `source_gain`: NLL with the sources exchanged between sentences, minus
  // NLL; nullopt where it was not measured. Returns the verdict once the run has failed. Throws
  // InvalidArgument if `step` does not grow.
  std::optional<Verdict> add_validation(int64_t step, double nll,
                                        std::optional<double> source_gain = std::nullopt);

  // The update `step` had a non-finite loss or gradient norm. Updates not reported were finite.
  std::optional<Verdict> add_nonfinite(int64_t step, NonfiniteValue value);

  // The run ended normally. `bleu` on the test set, where there is one; `reference_bleu` of the
  // reference topology at equal size and data, if known. An earlier verdict stands.
  Verdict finish(std::optional<double> bleu = std::nullopt,
                 std::optional<double> reference_bleu = std::nullopt);

  // The failure so far.
  [[nodiscard]] std::optional<Verdict> verdict() const;

  [[nodiscard]] const VerdictState& state() const { return state_; }
  // Continues from `state`; the options are not part of it. A verdict that would not have fallen
  // under these options, since `after` is later than its step or learning is not judged, is
  // withdrawn.
  void restore(const VerdictState& state);

 private:
  [[nodiscard]] VerdictStatus judge(int64_t step, double nll, std::optional<double> source_gain);
  void track_best(int64_t step, double nll);
  [[nodiscard]] bool is_relapse(int64_t step) const;
  [[nodiscard]] bool is_nan() const { return VerdictStatus(state_.status) == VerdictStatus::kNan; }
  [[nodiscard]] bool would_not_fall() const;
  [[nodiscard]] std::string reason() const;
  void decide(VerdictStatus status, int64_t step, double value);

  VerdictOptions options_;
  VerdictState state_;
};

}  // namespace fathom::score
