#include "launcher/train/time_limits.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "dist/local_communicator.h"

namespace fathom::launcher {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

Config with_timeout(double timeout_seconds) {
  Config config;
  config.dist.timeout_seconds = timeout_seconds;
  return config;
}

TEST(StepLimit, GivenStaysWhateverTheStepsTake) {
  StepLimit limit(with_timeout(20));
  for (int step = 0; step < 100; ++step) limit.add(1000);
  EXPECT_EQ(limit.value(), seconds(20));
}

TEST(StepLimit, ByItselfIsThatOfSlowStepsUntilTwentyAreKnown) {
  StepLimit limit{Config{}};
  for (int step = 1; step < 20; ++step) {
    limit.add(100);
    EXPECT_EQ(limit.value(), seconds(300)) << "after step " << step;
  }
  limit.add(100);
  EXPECT_EQ(limit.value(), seconds(1000));
}

TEST(StepLimit, ByItselfIsTenTimesTheMedianAndAMinuteAtLeast) {
  StepLimit fast{Config{}}, uneven{Config{}};
  for (int step = 0; step < 50; ++step) {
    fast.add(0.01);
    uneven.add(step % 3 == 0 ? 500 : 8);  // as where layers are observed, or a disk is slow
  }
  EXPECT_EQ(fast.value(), seconds(60));
  EXPECT_EQ(uneven.value(), seconds(80));
}

TEST(StepLimit, ByItselfFollowsStepsThatBecomeSlower) {
  StepLimit limit{Config{}};
  for (int step = 0; step < 1000; ++step) limit.add(1);
  for (int step = 0; step < 60; ++step) limit.add(9);
  EXPECT_EQ(limit.value(), seconds(90));
  for (int step = 0; step < 60; ++step) limit.add(1);
  EXPECT_EQ(limit.value(), seconds(60));
}

// A validation or a save is not known by the steps, however fast those are.
TEST(SectionLimit, ByItselfIsThatOfSlowSteps) {
  EXPECT_EQ(section_limit(Config{}), seconds(3000));
  EXPECT_EQ(section_limit(Config{}, hours(6)), seconds(3000));
}

TEST(SectionLimit, IsTenTimesThatOfAStep) {
  EXPECT_EQ(section_limit(with_timeout(20), hours(1)), seconds(200));
}

TEST(SectionLimit, IsNotMoreThanTheMost) {
  EXPECT_EQ(section_limit(with_timeout(20), seconds(90)), seconds(90));
}

TEST(SectionLimit, IsNotLessThanThatOfAStep) {
  EXPECT_EQ(section_limit(with_timeout(20), seconds(5)), seconds(20));
}

TEST(SectionLimit, OfAValidationOrASaveIsAnHourAtMost) {
  EXPECT_EQ(section_limit(with_timeout(20)), seconds(200));
  EXPECT_EQ(section_limit(with_timeout(1000)), hours(1));
  EXPECT_EQ(section_limit(with_timeout(7200)), hours(2));
}

TEST(MakeWatchdogDeathTest, EndsAProcessThatMakesNoProgress) {
  EXPECT_EXIT(
      {
        const auto group = dist::make_local_group(2);
        const dist::Watchdog watchdog = make_watchdog(with_timeout(0.05), *group[0]);
        std::this_thread::sleep_for(seconds(30));
      },
      ::testing::ExitedWithCode(7),
      "fathom: rank 0: watchdog: no progress for 0 s in step after step 0; a peer hangs or is gone");
}

TEST(MakeWatchdog, LetsALoneRankTakeItsTime) {
  const auto group = dist::make_local_group(1);
  dist::Watchdog watchdog = make_watchdog(with_timeout(0.01), *group[0]);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const dist::Watchdog::Section saving(watchdog, "save", dist::Watchdog::Duration(0.01));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

}  // namespace
}  // namespace fathom::launcher
