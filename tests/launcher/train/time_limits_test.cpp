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
