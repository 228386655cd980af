#include "launcher/train/rank_pace.h"

#include <gtest/gtest.h>

namespace fathom::launcher {
namespace {

TEST(RankPaces, CompareWithTheFirstAndTheFastest) {
  const std::vector<RankWork> ranks = {{.seconds = 2, .tokens = 100},
                                       {.seconds = 1, .tokens = 200}};

  const std::vector<RankPace> paces = rank_paces(ranks);

  EXPECT_EQ(paces.at(0).lag_seconds, 1);
  EXPECT_EQ(paces.at(0).relative_speed, 0.25);
  EXPECT_EQ(paces.at(1).lag_seconds, 0);
  EXPECT_EQ(paces.at(1).relative_speed, 1);
}

TEST(RankPaces, SayNothingOfTheSpeedOfARankWithoutTokens) {
  const std::vector<RankWork> ranks = {{.seconds = 0, .tokens = 0}, {.seconds = 1, .tokens = 8}};

  const std::vector<RankPace> paces = rank_paces(ranks);

  EXPECT_EQ(paces.at(0).relative_speed, std::nullopt);
  EXPECT_EQ(paces.at(1).relative_speed, 1);
  EXPECT_EQ(paces.at(1).lag_seconds, 1);
}

}  // namespace
}  // namespace fathom::launcher
