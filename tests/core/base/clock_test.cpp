#include "core/base/clock.h"

#include <cmath>
#include <ctime>
#include <limits>

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(Clock, StampsNamesInOrder) {
  const std::string stamp = utc_stamp();
  ASSERT_EQ(stamp.size(), 16u);
  EXPECT_EQ(stamp[8], 'T');
  EXPECT_EQ(stamp[15], 'Z');
  EXPECT_GT(stamp, "20200101T000000Z");
  EXPECT_LE(stamp, utc_stamp());
}

TEST(Clock, NeverGoesBackAndKnowsTheDate) {
  const double before = monotonic_seconds();
  EXPECT_GE(monotonic_seconds(), before);
  EXPECT_NEAR(wall_seconds(), double(std::time(nullptr)), 2);
}

TEST(DurationText, RoundsDown) {
  EXPECT_EQ(duration_text(-5), "0 s");
  EXPECT_EQ(duration_text(59.9), "59 s");
  EXPECT_EQ(duration_text(60), "1 min");
  EXPECT_EQ(duration_text(3599), "59 min");
  EXPECT_EQ(duration_text(3 * 3600 + 12 * 60 + 59), "3 h 12 min");
  EXPECT_EQ(duration_text(100 * 3600), "100 h 0 min");
  EXPECT_EQ(duration_text(std::nan("")), "0 s");
}

TEST(ShortDurationText, IsRoundedAndNeverLong) {
  EXPECT_EQ(short_duration_text(0), "0s");
  EXPECT_EQ(short_duration_text(59.4), "59s");
  EXPECT_EQ(short_duration_text(59.6), "1m00s");
  EXPECT_EQ(short_duration_text(3725), "1h02m");
  EXPECT_EQ(short_duration_text(2 * 86400 + 4 * 3600), "2d04h");
  EXPECT_EQ(short_duration_text(std::nan("")), "?");
  EXPECT_EQ(short_duration_text(-1), "?");
  EXPECT_EQ(short_duration_text(std::numeric_limits<double>::infinity()), "?");
}

}  // namespace
}  // namespace fathom
