#include "core/score/verdict.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"

namespace fathom::score {
namespace {

using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// H1 = 6, so the plateau is at 5.4 nats.
VerdictOptions options() { return {.unigram_entropy = 6.0, .after = 8000}; }

void expect_verdict(const std::optional<Verdict>& verdict, VerdictStatus status, int64_t step,
                    const std::string& reason) {
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->status, status) << to_string(verdict->status);
  EXPECT_EQ(verdict->step, step);
  EXPECT_EQ(verdict->reason, reason);
}

TEST(DefaultVerdictAfter, IsTwiceTheWarmupButAtLeast8000AndAtMostHalfTheRun) {
  EXPECT_EQ(default_verdict_after(4000, 100000), 8000);
  EXPECT_EQ(default_verdict_after(8000, 100000), 16000);
  EXPECT_EQ(default_verdict_after(100, 100000), 8000);
  EXPECT_EQ(default_verdict_after(0, 100000), 8000);
  EXPECT_EQ(default_verdict_after(8000, 20000), 10000);
  EXPECT_EQ(default_verdict_after(50, 3001), 1500);
  EXPECT_EQ(default_verdict_after(8000, 0), 16000);
}

TEST(DefaultVerdictAfter, IsNeverInTheWarmupNorBeforeStep1000) {
  EXPECT_EQ(default_verdict_after(4000, 5000), 4000);
  EXPECT_EQ(default_verdict_after(50, 301), 1000);
  EXPECT_EQ(default_verdict_after(0, 1), 1000);
}

TEST(VerdictMonitor, CallsAnOrdinaryRunOk) {
  VerdictMonitor monitor(options());
  EXPECT_FALSE(monitor.add_validation(4000, 5.5, 0.0));  // nothing is judged this early
  EXPECT_FALSE(monitor.add_validation(8000, 3.0, 0.8));
  EXPECT_FALSE(monitor.add_validation(12000, 2.0, 3.1));

  expect_verdict(monitor.finish(34.0, 35.0), VerdictStatus::kOk, 12000,
                 "The run ended normally; best validation loss 2.000 nats at step 12000; test "
                 "BLEU 34.00.");
}

TEST(VerdictMonitor, CallsAnyNonfiniteValidationNan) {
  for (const double nll : {kNaN, kInfinity, -kInfinity}) {
    VerdictMonitor monitor(options());
    expect_verdict(monitor.add_validation(100, nll, 1.0), VerdictStatus::kNan, 100,
                   "The validation loss was not finite at step 100 (1 in a row).");
  }
  VerdictMonitor monitor(options());
  expect_verdict(monitor.add_validation(100, 3.0, kNaN), VerdictStatus::kNan, 100,
                 "The source gain was not finite at step 100 (1 in a row).");
}

TEST(VerdictMonitor, CallsANonfiniteUpdateNan) {
  VerdictMonitor monitor(options());

  expect_verdict(monitor.add_nonfinite(7, NonfiniteValue::kGradientNorm), VerdictStatus::kNan, 7,
                 "The gradient norm was not finite at step 7 (1 in a row).");
}

TEST(VerdictMonitor, CountsOnlyNonfiniteUpdatesInARow) {
  VerdictOptions three = options();
  three.nonfinite_limit = 3;
  VerdictMonitor monitor(three);
  EXPECT_FALSE(monitor.add_nonfinite(1, NonfiniteValue::kLoss));
  EXPECT_FALSE(monitor.add_nonfinite(2, NonfiniteValue::kLoss));
  EXPECT_FALSE(monitor.add_nonfinite(4, NonfiniteValue::kLoss));
  EXPECT_FALSE(monitor.add_nonfinite(5, NonfiniteValue::kLoss));

  expect_verdict(monitor.add_nonfinite(6, NonfiniteValue::kLoss), VerdictStatus::kNan, 6,
                 "The training loss was not finite at step 6 (3 in a row).");
}

TEST(VerdictMonitor, CallsTheUnigramLevelAPlateauFromAfterOn) {
  VerdictMonitor monitor(options());
  EXPECT_FALSE(monitor.add_validation(4000, 5.7, 0.0));
  EXPECT_FALSE(monitor.add_validation(7999, 5.6, 0.0));

  expect_verdict(monitor.add_validation(8000, 5.65, 0.0), VerdictStatus::kPlateau, 8000,
                 "The best validation loss up to step 8000 is 5.600 nats (step 7999), above "
                 "5.400 = 0.9 x the unigram entropy 6.000.");
}

TEST(VerdictMonitor, JudgesThePlateauByTheBestValidation) {
  VerdictMonitor monitor(options());
  EXPECT_FALSE(monitor.add_validation(4000, 5.3, 0.5));

  EXPECT_FALSE(monitor.add_validation(8000, 5.5, 0.5));
}

TEST(VerdictMonitor, CallsADecoderThatIgnoresTheSourceBlind) {
  VerdictMonitor monitor(options());

  expect_verdict(monitor.add_validation(8000, 4.0, 0.004), VerdictStatus::kBlind, 8000,
                 "Exchanging the sources between sentences costs 0.004 nats at step 8000, under "
                 "0.1: the decoder does not read the source.");
}

TEST(VerdictMonitor, DoesNotJudgeADecoderOnlyModelOrAnUnmeasuredGainBlind) {
  VerdictOptions decoder = options();
  decoder.encoder_decoder = false;
  VerdictMonitor monitor(decoder), unmeasured(options());

  EXPECT_FALSE(monitor.add_validation(8000, 4.0, 0.0));
  EXPECT_FALSE(monitor.add_validation(9000, 4.0, kNaN));
  EXPECT_FALSE(unmeasured.add_validation(8000, 4.0));
}

TEST(VerdictMonitor, CallsThreeRaisedValidationsARelapse) {
  VerdictMonitor monitor(options());
  EXPECT_FALSE(monitor.add_validation(1000, 3.0, 1.0));
  EXPECT_FALSE(monitor.add_validation(1500, 4.1, 1.0));
  EXPECT_FALSE(monitor.add_validation(2000, 4.1, 1.0));

  expect_verdict(
      monitor.add_validation(2500, 4.2, 1.0), VerdictStatus::kRelapse, 2500,
      "The validation loss is 4.200 nats at step 2500 and has stayed more than 1.0 nats above "
      "the best, 3.000 at step 1000, for 3 validations and 1000 steps.");
}

TEST(VerdictMonitor, CallsFiveThousandRaisedUpdatesARelapse) {
  VerdictMonitor monitor(options());
  EXPECT_FALSE(monitor.add_validation(1000, 3.0, 1.0));
  EXPECT_FALSE(monitor.add_validation(3000, 4.1, 1.0));

  const auto verdict = monitor.add_validation(8000, 4.1, 1.0);

  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->status, VerdictStatus::kRelapse);
}

TEST(VerdictMonitor, IgnoresARaiseThatEnds) {
  VerdictMonitor monitor(options());
  EXPECT_FALSE(monitor.add_validation(1000, 3.0, 1.0));
  for (int64_t step = 2000; step < 20000; step += 3000) {
    EXPECT_FALSE(monitor.add_validation(step, 4.1, 1.0));
    EXPECT_FALSE(monitor.add_validation(step + 1000, 4.1, 1.0));
    EXPECT_FALSE(monitor.add_validation(step + 2000, 4.0, 1.0));  // not above best + 1
  }
}

TEST(VerdictMonitor, ThePlateauComesBeforeBlindAndRelapse) {
  VerdictMonitor monitor(options());
  EXPECT_FALSE(monitor.add_validation(1000, 5.5, 0.0));
  EXPECT_FALSE(monitor.add_validation(2000, 6.6, 0.0));
  EXPECT_FALSE(monitor.add_validation(3000, 6.6, 0.0));

  const auto verdict = monitor.add_validation(8000, 6.6, 0.0);

  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->status, VerdictStatus::kPlateau);
}

TEST(VerdictMonitor, CallsALowBleuDegenerate) {
  VerdictMonitor low(options()), half(options()), enough(options()), nan(options());

  expect_verdict(low.finish(0.97, 1.5), VerdictStatus::kDegenerate, 0,
                 "The test BLEU is 0.97, under 1.00.");
  expect_verdict(half.finish(8.45, 34.0), VerdictStatus::kDegenerate, 0,
                 "The test BLEU is 8.45, under 0.5 x the reference topology's 34.00.");
  EXPECT_EQ(enough.finish(32.28, 35.12).status, VerdictStatus::kOk);
  EXPECT_EQ(nan.finish(kNaN).status, VerdictStatus::kDegenerate);
}

TEST(VerdictMonitor, KeepsTheFirstFailure) {
  VerdictMonitor monitor(options());
  const auto first = monitor.add_nonfinite(7, NonfiniteValue::kLoss);
  ASSERT_TRUE(first.has_value());

  expect_verdict(monitor.add_validation(8000, 5.9, 0.0), VerdictStatus::kNan, 7, first->reason);
  expect_verdict(monitor.add_nonfinite(9000, NonfiniteValue::kLoss), VerdictStatus::kNan, 7,
                 first->reason);
  expect_verdict(monitor.finish(0.0), VerdictStatus::kNan, 7, first->reason);
}

TEST(VerdictMonitor, ContinuesFromASavedStateAsIfNeverInterrupted) {
  const std::vector<double> nll{3.0, 2.5, 3.6, 3.7, 3.8};
  for (size_t cut = 0; cut <= nll.size(); ++cut) {
    VerdictMonitor whole(options()), before(options()), after(options());
    for (size_t i = 0; i < nll.size(); ++i) {
      const auto step = int64_t(1000 * (i + 1));
      whole.add_validation(step, nll[i], 1.0);
      if (i == cut) after.restore(before.state());
      (i < cut ? before : after).add_validation(step, nll[i], 1.0);
    }
    if (cut == nll.size()) after.restore(before.state());

    ASSERT_TRUE(whole.verdict().has_value());
    expect_verdict(after.verdict(), VerdictStatus::kRelapse, 5000, whole.verdict()->reason);
  }
}

TEST(VerdictMonitor, KeepsAVerdictThatDidNotEndTheRunAndItsNumbers) {
  VerdictMonitor monitor(options());
  const auto plateau = monitor.add_validation(8000, 5.9, 0.0);
  ASSERT_TRUE(plateau.has_value());

  expect_verdict(monitor.add_validation(9000, 3.0, 1.0), VerdictStatus::kPlateau, 8000,
                 plateau->reason);
  EXPECT_EQ(monitor.add_validation(10000, kNaN, 1.0)->status, VerdictStatus::kNan);
}

TEST(VerdictMonitor, LetsNonfiniteUpdatesReplaceAVerdictOnLearning) {
  VerdictMonitor monitor(options());
  ASSERT_TRUE(monitor.add_validation(8000, 5.9, 0.0).has_value());

  expect_verdict(monitor.add_nonfinite(8001, NonfiniteValue::kLoss), VerdictStatus::kNan, 8001,
                 "The training loss was not finite at step 8001 (1 in a row).");
}

TEST(VerdictMonitor, JudgesOnlyFinitenessWhereLearningIsNotJudged) {
  VerdictOptions off = options();
  off.judges_learning = false;
  VerdictMonitor monitor(off);

  EXPECT_FALSE(monitor.add_validation(8000, 5.9, 0.0));
  EXPECT_FALSE(monitor.add_validation(9000, 7.9, 0.0));
  EXPECT_FALSE(monitor.add_validation(20000, 7.9, 0.0));
  EXPECT_TRUE(monitor.add_validation(20001, kNaN, 0.0));
}

// Of a monitor whose verdict fell at step 8000 of `nll`, continued with other options.
std::optional<Verdict> judged_again(double nll, const VerdictOptions& then) {
  VerdictMonitor before(options()), after(then);
  before.add_validation(1000, 3.0, 1.0);
  if (nll > 5.4) before = VerdictMonitor(options());
  before.add_validation(2000, nll, 1.0);
  before.add_validation(8000, nll, 1.0);
  EXPECT_TRUE(before.verdict().has_value());
  after.restore(before.state());
  return after.verdict();
}

TEST(VerdictMonitor, WithdrawsAVerdictThatItsOptionsWouldNotHaveGiven) {
  VerdictOptions later = options(), sooner = options(), off = options();
  later.after = 8001;
  sooner.after = 7000;
  off.judges_learning = false;
  const double plateau = 5.9, relapse = 4.5;

  EXPECT_FALSE(judged_again(plateau, later).has_value());
  EXPECT_FALSE(judged_again(plateau, off).has_value());
  EXPECT_TRUE(judged_again(plateau, sooner).has_value());
  EXPECT_TRUE(judged_again(relapse, later).has_value());  // which does not wait for `after`
  EXPECT_FALSE(judged_again(relapse, off).has_value());
}

TEST(VerdictMonitor, NeverWithdrawsNonfiniteNumbers) {
  VerdictOptions off = options();
  off.judges_learning = false;
  off.after = 100000;
  VerdictMonitor before(options()), after(off);
  before.add_nonfinite(7, NonfiniteValue::kLoss);

  after.restore(before.state());

  EXPECT_TRUE(after.verdict().has_value());
}

TEST(VerdictMonitor, HoldsOnlyFiniteNumbersInItsState) {
  VerdictMonitor monitor(options());
  monitor.add_validation(100, kNaN, kNaN);

  EXPECT_TRUE(std::isfinite(monitor.state().best_nll));
  EXPECT_TRUE(std::isfinite(monitor.state().value));
}

TEST(VerdictMonitor, RefusesAStateOfAnotherKind) {
  VerdictMonitor monitor(options());
  VerdictState state;
  state.status = 6;

  try {
    monitor.restore(state);
    FAIL() << "status 6 was accepted";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the saved state has status 6, expected 0 to 5"));
  }
}

TEST(VerdictMonitor, RefusesStepsThatDoNotGrow) {
  VerdictMonitor monitor(options());
  monitor.add_validation(100, 3.0, 1.0);

  try {
    monitor.add_validation(100, 3.0, 1.0);
    FAIL() << "the same step was accepted twice";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("at step 100 after one at step 100"));
  }
}

TEST(VerdictMonitor, RefusesAnEntropyThatCannotBe) {
  for (const double entropy : {0.0, -1.0, kNaN, kInfinity}) {
    try {
      VerdictMonitor monitor({.unigram_entropy = entropy});
      FAIL() << entropy << " was accepted";
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr("expected a positive finite number"));
    }
  }
}

}  // namespace
}  // namespace fathom::score
