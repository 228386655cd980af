#include "launcher/train/ending.h"

#include "core/base/error.h"
#include "tests/launcher/train/training_support.h"

namespace fathom::launcher {
namespace {

Config endless() {
  Config config;
  config.train.max_steps = 0;
  config.train.max_epochs = 0;
  config.train.patience = 0;
  return config;
}

TrainState far_on() {
  TrainState state;
  state.step = 100;
  state.next = {.epoch = 7, .batch = 0};
  state.validations_without_gain = 5;
  state.best_step = 60;
  return state;
}

TEST(Ending, IsNeverReachedWithoutALimit) { EXPECT_FALSE(is_complete(endless(), far_on())); }

TEST(Ending, IsReachedAtTheLastStep) {
  Config config = endless();
  config.train.max_steps = 101;
  EXPECT_FALSE(is_complete(config, far_on()));
  config.train.max_steps = 100;
  EXPECT_TRUE(is_complete(config, far_on()));
  EXPECT_EQ(result_of(config, far_on(), {}).reason, "reached train.max_steps 100");
}

TEST(Ending, IsReachedAfterTheLastEpoch) {
  Config config = endless();
  config.train.max_epochs = 8;
  EXPECT_FALSE(is_complete(config, far_on()));
  config.train.max_epochs = 7;
  EXPECT_TRUE(is_complete(config, far_on()));
  EXPECT_EQ(result_of(config, far_on(), {}).reason, "reached train.max_epochs 7");
}

TEST(Ending, IsReachedWherePatienceIsAtItsEnd) {
  Config config = endless();
  config.train.patience = 6;
  EXPECT_FALSE(is_complete(config, far_on()));
  config.train.patience = 5;
  EXPECT_TRUE(is_complete(config, far_on()));
  EXPECT_EQ(result_of(config, far_on(), {}).reason,
            "no better validation for 5 in a row (train.patience); best at step 60");
}

TEST(Ending, IsAFailureWhereTheVerdictSaysSo) {
  Config config = endless();
  config.train.max_steps = 100;

  const TrainResult failed =
      result_of(config, far_on(), {score::VerdictStatus::kPlateau, "Too high.", 90});

  EXPECT_EQ(failed.kind, StopKind::kFailed);
  EXPECT_EQ(failed.reason,
            "plateau: Too high. To go on, run the same command with a larger verdict.after, or "
            "with verdict.action=report.");
  EXPECT_EQ(result_of(config, far_on(), {}).kind, StopKind::kCompleted);
}

TEST(Ending, IsAFailureByAVerdictThatEndsRuns) {
  using enum score::VerdictStatus;
  Config config = endless();
  for (const auto action : {VerdictAction::kStop, VerdictAction::kReport, VerdictAction::kOff}) {
    config.verdict.action = action;
    const bool stops = action == VerdictAction::kStop;
    EXPECT_EQ(ends_run(config, {kPlateau, "", 1}), stops);
    EXPECT_EQ(ends_run(config, {kBlind, "", 1}), stops);
    EXPECT_EQ(ends_run(config, {kRelapse, "", 1}), stops);
    EXPECT_TRUE(ends_run(config, {kNan, "", 1}));
  }
}

TEST(Ending, TellsAVerdictThatWasOnlyReported) {
  Config config = endless();
  config.train.max_steps = 100;
  config.verdict.action = VerdictAction::kReport;

  const TrainResult result =
      result_of(config, far_on(), {score::VerdictStatus::kPlateau, "Too high.", 90});

  EXPECT_EQ(result.kind, StopKind::kCompleted);
  EXPECT_EQ(result.reason, "reached train.max_steps 100");
  EXPECT_EQ(result.verdict, "plateau: Too high.");
}

TEST(Ending, HasAStatusAndAnExitCode) {
  EXPECT_STREQ(status_of(StopKind::kCompleted), "completed");
  EXPECT_STREQ(status_of(StopKind::kSignalled), "interrupted");
  EXPECT_STREQ(status_of(StopKind::kFailed), "failed");
  EXPECT_EQ(exit_code_of(StopKind::kCompleted), 0);
  EXPECT_EQ(exit_code_of(StopKind::kSignalled), 75);
  EXPECT_EQ(exit_code_of(StopKind::kFailed), 5);
}

TEST(MakeVerdict, GoesOnWithTheVerdictOfACheckpoint) {
  const data::PreparedData data = small_data();
  score::VerdictMonitor first = make_verdict(small_config(), data, {});
  for (int64_t step = 1; step <= 10; ++step)
    (void)first.add_nonfinite(step, score::NonfiniteValue::kLoss);

  const score::VerdictMonitor second = make_verdict(small_config(), data, first.state());

  ASSERT_TRUE(second.verdict().has_value());
  EXPECT_EQ(second.verdict()->status, score::VerdictStatus::kNan);
  EXPECT_EQ(second.verdict()->step, 10);
  EXPECT_EQ(second.verdict()->reason, first.verdict()->reason);
}

TEST(MakeVerdict, FailsAfterTenSkippedUpdatesInARow) {
  score::VerdictMonitor verdict = make_verdict(small_config(), small_data(), {});

  for (int64_t step = 1; step <= 9; ++step)
    EXPECT_FALSE(verdict.add_nonfinite(step, score::NonfiniteValue::kGradientNorm).has_value());
  EXPECT_TRUE(verdict.add_nonfinite(10, score::NonfiniteValue::kGradientNorm).has_value());
}

// The first update at which a loss above the unigram level is a failure.
int64_t judged_from(const Config& config) {
  const data::PreparedData data = small_data();
  score::VerdictMonitor verdict = make_verdict(config, data, {});
  for (int64_t step = 1; step < 20'000; ++step)
    if (verdict.add_validation(step, data.unigram_entropy, 1.0)) return step;
  return -1;
}

TEST(MakeVerdict, JudgesFromTheStepOfTheConfigOnOrFromOneThatFollowsFromIt) {
  Config config = small_config();
  config.verdict.after = 123;
  EXPECT_EQ(judged_from(config), 123);
  config.verdict.after = 0;
  config.optimizer.warmup_steps = 5000;
  config.train.max_steps = 100'000;
  EXPECT_EQ(judged_from(config), 10'000);
  config.train.max_steps = 12'000;
  EXPECT_EQ(judged_from(config), 6000);
  config.train.max_steps = 600;
  EXPECT_EQ(judged_from(config), 5000) << "not before the warm-up is over";
}

TEST(MakeVerdict, WithdrawsAVerdictForALaterStep) {
  Config config = small_config();
  config.verdict.after = 1;
  const data::PreparedData data = small_data();
  score::VerdictMonitor first = make_verdict(config, data, {});
  ASSERT_TRUE(first.add_validation(1, data.unigram_entropy, 1.0).has_value());

  EXPECT_TRUE(make_verdict(config, data, first.state()).verdict().has_value());
  config.verdict.after = 2;
  EXPECT_FALSE(make_verdict(config, data, first.state()).verdict().has_value());
  config.verdict = {.after = 1, .action = VerdictAction::kOff};
  EXPECT_FALSE(make_verdict(config, data, first.state()).verdict().has_value());
}

TEST(MakeVerdict, AsksADecoderForNoSourceGain) {
  Config config = small_config();
  config.verdict.after = 1;
  const data::PreparedData data = small_data();
  EXPECT_TRUE(make_verdict(config, data, {}).add_validation(1, 0.5, 0.0).has_value());
  config.model.kind = model::ModelKind::kDecoder;
  EXPECT_FALSE(make_verdict(config, data, {}).add_validation(1, 0.5, 0.0).has_value());
}

}  // namespace
}  // namespace fathom::launcher
