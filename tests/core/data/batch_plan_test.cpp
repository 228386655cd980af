#include "core/data/batch_plan.h"

#include <algorithm>
#include <ctime>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/philox.h"
#include "tests/core/data/data_support.h"

namespace fathom::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

// 1 to `longest` tokens a side, drawn independently.
PairLengths random_lengths(int64_t n, int32_t longest, uint64_t seed = 3) {
  const PhiloxStream stream(seed, "test/lengths");
  PairLengths lengths;
  for (int64_t i = 0; i < n; ++i) {
    lengths.source.push_back(1 + int32_t(stream.bits(uint64_t(2 * i)) % uint64_t(longest)));
    lengths.target.push_back(1 + int32_t(stream.bits(uint64_t(2 * i + 1)) % uint64_t(longest)));
  }
  return lengths;
}

int64_t cost_of(const PairLengths& lengths, const std::vector<int64_t>& pairs) {
  int64_t cost = 0;
  for (const int64_t pair : pairs) cost += lengths.cost(pair);
  return cost;
}

std::vector<int64_t> sorted(std::vector<int64_t> v) {
  std::sort(v.begin(), v.end());
  return v;
}

std::vector<int64_t> counted(int64_t n) {
  std::vector<int64_t> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), 0);
  return v;
}

class EveryConfig : public ::testing::TestWithParam<BatchConfig> {};

TEST_P(EveryConfig, TrainsEveryPairOnceAnEpoch) {
  const PairLengths lengths = random_lengths(2003, 40);
  const EpochPlan plan(lengths, GetParam(), 1, 0);

  std::vector<int64_t> from_batches, from_shards;
  for (int64_t b = 0; b < plan.batch_count(); ++b) {
    const Batch batch = plan.batch(b);
    EXPECT_FALSE(batch.pairs.empty());
    from_batches.insert(from_batches.end(), batch.pairs.begin(), batch.pairs.end());
    for (const auto& shard : batch.shards)
      from_shards.insert(from_shards.end(), shard.begin(), shard.end());
  }

  EXPECT_EQ(from_batches, plan.order());
  EXPECT_EQ(sorted(from_batches), counted(2003));
  EXPECT_EQ(sorted(from_shards), counted(2003));
}

TEST_P(EveryConfig, KeepsBatchesAndShardsWithinTheirTokens) {
  const PairLengths lengths = random_lengths(2003, 40);
  const BatchConfig config = GetParam();
  ASSERT_GE(resolved_shards(config), fewest_shards(config));

  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const EpochPlan plan(lengths, config, seed, 0);
    for (int64_t b = 0; b < plan.batch_count(); ++b) {
      const Batch batch = plan.batch(b);
      EXPECT_EQ(batch.cost, cost_of(lengths, batch.pairs));
      EXPECT_LE(batch.cost, config.tokens);
      ASSERT_EQ(int64_t(batch.shards.size()), resolved_shards(config));
      for (const auto& shard : batch.shards)
        EXPECT_LE(cost_of(lengths, shard), config.micro_tokens);
    }
  }
}

TEST_P(EveryConfig, FillsBatchesUpToTheLimit) {
  const PairLengths lengths = random_lengths(2003, 40);
  const BatchConfig config = GetParam();
  const bool to_the_brim =
      config.tokens + resolved_shards(config) * 40 > resolved_shards(config) * config.micro_tokens;
  const EpochPlan plan(lengths, config, 1, 0);

  for (int64_t b = 0; b + 1 < plan.batch_count(); ++b) {
    const int64_t next = lengths.cost(plan.batch(b + 1).pairs.front());
    if (to_the_brim)  // shards must fit too, which may cost a pair or two a shard
      EXPECT_GE(plan.batch(b).cost, config.tokens - 40 * (1 + resolved_shards(config)));
    else
      EXPECT_GT(plan.batch(b).cost + next, config.tokens);
  }
}

TEST_P(EveryConfig, BalancesShardsToOnePair) {
  const PairLengths lengths = random_lengths(2003, 40);
  const EpochPlan plan(lengths, GetParam(), 1, 0);

  for (int64_t b = 0; b < plan.batch_count(); ++b) {
    std::vector<int64_t> load;
    for (const auto& shard : plan.batch(b).shards) load.push_back(cost_of(lengths, shard));
    const auto [least, most] = std::minmax_element(load.begin(), load.end());
    EXPECT_LE(*most - *least, 40);
  }
}

// The last one has no slack at all: 8 shards of 512 for 4096 tokens.
INSTANTIATE_TEST_SUITE_P(EpochPlan, EveryConfig,
                         ::testing::Values(BatchConfig{.tokens = 1000},
                                           BatchConfig{.tokens = 40, .micro_tokens = 40},
                                           BatchConfig{.tokens = 900, .shards = 3},
                                           BatchConfig{.tokens = 1 << 20, .micro_tokens = 1 << 18},
                                           BatchConfig{.tokens = 320, .micro_tokens = 40},
                                           BatchConfig{.tokens = 4096, .micro_tokens = 512}),
                         [](const auto& config) {
                           return join("Tokens", config.param.tokens, "Micro",
                                       config.param.micro_tokens, "Shards", config.param.shards);
                         });

TEST(EpochPlan, CountsTheTokensOfBothSides) {
  const PairLengths lengths{{3, 5, 2}, {4, 1, 9}};
  const EpochPlan plan(lengths, {.tokens = 100}, 1, 0);
  const Batch batch = plan.batch(0);

  EXPECT_EQ(plan.batch_count(), 1);
  EXPECT_EQ(batch.source_tokens, 10);
  EXPECT_EQ(batch.target_tokens, 14);
  EXPECT_EQ(batch.cost, 4 + 5 + 9);
}

TEST(EpochPlan, IsAPureFunctionOfItsArguments) {
  const PairLengths lengths = random_lengths(500, 30), same = lengths;
  const EpochPlan a(lengths, {.tokens = 300}, 7, 2), b(same, {.tokens = 300}, 7, 2);

  ASSERT_EQ(a.batch_count(), b.batch_count());
  for (int64_t i = a.batch_count() - 1; i >= 0; --i) {  // in any order: no state moves on
    EXPECT_EQ(a.batch(i).shards, b.batch(i).shards);
    EXPECT_EQ(a.batch(i).shards, a.batch(i).shards);
  }
}

TEST(EpochPlan, OrderChangesWithSeedAndEpochAndNotWithBatchKeys) {
  const PairLengths lengths = random_lengths(500, 30);
  const auto order = [&](uint64_t seed, int64_t epoch, BatchConfig config) {
    return EpochPlan(lengths, config, seed, epoch).order();
  };
  const auto first = order(1, 0, {});

  EXPECT_NE(order(2, 0, {}), first);
  EXPECT_NE(order(1, 1, {}), first);
  EXPECT_EQ(order(1, 0, {.tokens = 100, .micro_tokens = 50, .shards = 5}), first);
}

// Each of 4 places is taken by each of 4 pairs in a quarter of 4000 epochs, within 5 sigma (137).
TEST(EpochPlan, OrderIsUniform) {
  const PairLengths lengths = random_lengths(4, 5);
  int64_t count[4][4] = {};
  for (int64_t epoch = 0; epoch < 4000; ++epoch) {
    const std::vector<int64_t> order = EpochPlan(lengths, {}, 1, epoch).order();
    for (size_t place = 0; place < 4; ++place) ++count[place][order[place]];
  }

  for (const auto& place : count)
    for (const int64_t n : place) EXPECT_NEAR(double(n), 1000, 137);
}

TEST(EpochPlan, BalancesTheLongestFirstAndKeepsTheOrderInAShard) {
  PairLengths lengths;
  lengths.source = {10, 7, 6, 5, 1};
  lengths.target = {1, 1, 1, 1, 1};
  const EpochPlan plan(lengths, {.tokens = 100, .shards = 2}, 1, 0);
  const Batch batch = plan.batch(0);

  // 10 | 7; 6 goes to 7; 5 to 10; 1 to the lighter or, at 15 and 13, the second.
  std::set<std::vector<int64_t>> shards;
  for (const auto& shard : batch.shards) shards.insert(sorted(shard));
  EXPECT_EQ(shards, (std::set<std::vector<int64_t>>{{0, 3}, {1, 2, 4}}));
  for (const auto& shard : batch.shards) {
    std::vector<int64_t> in_batch_order;
    for (const int64_t pair : batch.pairs)
      if (std::find(shard.begin(), shard.end(), pair) != shard.end())
        in_batch_order.push_back(pair);
    EXPECT_EQ(shard, in_batch_order);
  }
}

TEST(EpochPlan, LeavesShardsEmptyWhenThereAreFewerPairs) {
  const PairLengths lengths = random_lengths(3, 5);
  const Batch batch = EpochPlan(lengths, {}, 1, 0).batch(0);

  EXPECT_EQ(batch.shards.size(), 8u);
  EXPECT_EQ(std::count_if(batch.shards.begin(), batch.shards.end(),
                          [](const auto& shard) { return shard.empty(); }),
            5);
}

TEST(EpochPlan, NamesBothKeysWhenAPairIsTooLong) {
  PairLengths lengths = random_lengths(50, 30);
  lengths.target[17] = 300;
  const auto error = [&](BatchConfig config) {
    return error_of<InvalidArgument>([&] { EpochPlan(lengths, config, 1, 0); });
  };

  EXPECT_THAT(error({.tokens = 4096, .micro_tokens = 256}),
              AllOf(HasSubstr("pair 17 has 300 tokens with EOS, but batch.micro_tokens is 256"),
                    HasSubstr("data.max_length to 255")));
  EXPECT_THAT(error({.tokens = 299}),
              AllOf(HasSubstr("batch.tokens is 299"), HasSubstr("data.max_length to 298")));
  EXPECT_EQ(error({.tokens = 300, .micro_tokens = 300}), "<no error>");
  EXPECT_THAT(error({.tokens = 1}),
              AllOf(HasSubstr("raise batch.tokens to 300"), Not(HasSubstr("data.max_length"))));
}

TEST(EpochPlan, RefusesKeysBelowOneNoPairsAndABatchThatIsNotThere) {
  const PairLengths lengths = random_lengths(5, 5);
  const auto error = [](const PairLengths& l, BatchConfig config) {
    return error_of<InvalidArgument>([&] { EpochPlan(l, config, 1, 0); });
  };

  EXPECT_THAT(error(lengths, {.tokens = 0}), HasSubstr("batch.tokens is 0"));
  EXPECT_THAT(error(lengths, {.micro_tokens = -1}), HasSubstr("batch.micro_tokens is -1"));
  EXPECT_THAT(error(lengths, {.shards = -2}), HasSubstr("batch.shards is -2"));
  EXPECT_THAT(error(lengths, {.shards = 100'000}), HasSubstr("the most is 65536"));
  EXPECT_THAT(error({}, {}), HasSubstr("no pairs"));
  EXPECT_THAT(error_of<InvalidArgument>([&] { (void)EpochPlan(lengths, {}, 1, 0).batch(1); }),
              HasSubstr("batch 1 of 1"));
}

TEST(EpochPlan, OfABigCorpusTakesNoTime) {
  const PairLengths lengths = random_lengths(163'000, 20);
  const std::clock_t start = std::clock();  // of this process: other load must not show
  const EpochPlan plan(lengths, {.tokens = 32768}, 1, 0);
  const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;

  EXPECT_GT(plan.batch_count(), 50);
  EXPECT_LT(seconds, 1.0);  // 0.05 s without sanitizers
}

TEST(Shards, DefaultIsEightOrThePowerOfTwoThatTheTokensNeed) {
  EXPECT_EQ(resolved_shards({}), 8);
  EXPECT_EQ(resolved_shards({.tokens = 32768, .micro_tokens = 4096}), 8);
  EXPECT_EQ(resolved_shards({.tokens = 32769, .micro_tokens = 4096}), 16);
  EXPECT_EQ(resolved_shards({.tokens = 100'000, .micro_tokens = 1000}), 128);
  EXPECT_EQ(resolved_shards({.tokens = 100'000, .micro_tokens = 1000, .shards = 5}), 5);
}

TEST(Shards, AreAtLeastSoManyThatOneHoldsMicroTokens) {
  EXPECT_EQ(fewest_shards({.tokens = 8192, .micro_tokens = 2048}), 4);
  EXPECT_EQ(fewest_shards({.tokens = 8193, .micro_tokens = 2048}), 5);
}

TEST(EvaluationPlan, HasEveryPairOnceWithinMicroTokensShortestFirst) {
  const PairLengths lengths = random_lengths(777, 40);
  const auto plan = evaluation_plan(lengths, 100);

  std::vector<int64_t> all;
  for (const auto& pairs : plan) {
    EXPECT_FALSE(pairs.empty());
    EXPECT_LE(cost_of(lengths, pairs), 100);
    all.insert(all.end(), pairs.begin(), pairs.end());
  }
  EXPECT_EQ(sorted(all), counted(777));
  for (size_t i = 1; i < all.size(); ++i)
    EXPECT_LT(std::pair(lengths.cost(all[i - 1]), all[i - 1]),
              std::pair(lengths.cost(all[i]), all[i]));
}

TEST(EvaluationPlan, PutsAPairOverMicroTokensAloneAndTakesNoPairs) {
  const PairLengths lengths{{3, 50, 60, 2}, {4, 1, 1, 4}};

  EXPECT_THAT(evaluation_plan(lengths, 49),
              ElementsAre(ElementsAre(0, 3), ElementsAre(1), ElementsAre(2)));
  EXPECT_TRUE(evaluation_plan({}, 49).empty());
}

}  // namespace
}  // namespace fathom::data
