#include "core/data/micro_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/data/batch_sequence.h"

namespace fathom::data {
namespace {

using ::testing::ElementsAre;

// Pair i costs 10 (source) and has a target of i + 1.
PairLengths ten_each() {
  PairLengths lengths;
  for (int32_t i = 0; i < 8; ++i) {
    lengths.source.push_back(10);
    lengths.target.push_back(i + 1);
  }
  return lengths;
}

Batch batch_of(std::vector<std::vector<int64_t>> shards) {
  Batch batch;
  batch.shards = std::move(shards);
  return batch;
}

std::vector<std::vector<int64_t>> pairs_of(const std::vector<MicroBatch>& micro) {
  std::vector<std::vector<int64_t>> pairs;
  for (const MicroBatch& m : micro) pairs.push_back(m.pairs);
  return pairs;
}

using Pairs = std::vector<int64_t>;

TEST(MicroBatches, AreTheShardsOneByOneWhereNothingIsFused) {
  const Batch batch = batch_of({{0, 1}, {}, {2}, {3}});

  const std::vector<MicroBatch> micro =
      micro_batches(batch, ten_each(), 0, 3, {.micro_tokens = 1000});

  EXPECT_THAT(pairs_of(micro), ElementsAre(Pairs{0, 1}, Pairs{}, Pairs{2}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(micro[size_t(i)].first_shard, i);
    EXPECT_EQ(micro[size_t(i)].shards.size(), 1u);
    EXPECT_TRUE(micro[size_t(i)].is_first && micro[size_t(i)].is_last);
  }
}

TEST(MicroBatches, KnowTheRowsOfASplitShardThatWentBefore) {
  const Batch batch = batch_of({{0, 1, 2, 3}, {4}});

  const std::vector<MicroBatch> micro =
      micro_batches(batch, ten_each(), 0, 2, {.micro_tokens = 20, .fuses_shards = true});

  ASSERT_THAT(pairs_of(micro), ElementsAre(Pairs{0, 1}, Pairs{2, 3}, Pairs{4}));
  EXPECT_EQ(micro[0].shards[0].source_before, 0);
  EXPECT_EQ(micro[1].shards[0].source_before, 20);
  EXPECT_EQ(micro[1].shards[0].target_before, 1 + 2);
  EXPECT_EQ(micro[2].shards[0].source_before, 0) << "another shard";
}

TEST(MicroBatches, FuseAdjacentShardsUpToTheLimitAndNotOneTokenBeyond) {
  const Batch batch = batch_of({{0}, {1}, {2}, {3}, {4}});

  const auto fused = [&](int64_t limit) {
    return pairs_of(
        micro_batches(batch, ten_each(), 1, 5, {.micro_tokens = limit, .fuses_shards = true}));
  };

  EXPECT_THAT(fused(20), ElementsAre(Pairs{1, 2}, Pairs{3, 4}));
  EXPECT_THAT(fused(19), ElementsAre(Pairs{1}, Pairs{2}, Pairs{3}, Pairs{4}));
  EXPECT_THAT(fused(30), ElementsAre(Pairs{1, 2, 3}, Pairs{4}));
}

TEST(MicroBatches, KnowWhichRowsBelongToWhichShard) {
  const Batch batch = batch_of({{0, 3}, {}, {5}});

  const std::vector<MicroBatch> micro =
      micro_batches(batch, ten_each(), 0, 3, {.micro_tokens = 1000, .fuses_shards = true});

  ASSERT_EQ(micro.size(), 1u);
  ASSERT_EQ(micro[0].shards.size(), 3u);
  const ShardRows &a = micro[0].shards[0], &b = micro[0].shards[1], &c = micro[0].shards[2];
  EXPECT_THAT((std::vector{a.first_source, a.source_rows, a.first_target, a.target_rows}),
              ElementsAre(0, 20, 0, 5));
  EXPECT_THAT((std::vector{b.first_source, b.source_rows, b.first_target, b.target_rows}),
              ElementsAre(20, 0, 5, 0));
  EXPECT_THAT((std::vector{c.first_source, c.source_rows, c.first_target, c.target_rows}),
              ElementsAre(20, 10, 5, 6));
}

TEST(MicroBatches, SplitAShardThatIsTooLargeAlone) {
  const Batch batch = batch_of({{0}, {1, 2, 3, 4, 5}, {6}});

  const std::vector<MicroBatch> micro =
      micro_batches(batch, ten_each(), 0, 3, {.micro_tokens = 20, .fuses_shards = true});

  EXPECT_THAT(pairs_of(micro), ElementsAre(Pairs{0}, Pairs{1, 2}, Pairs{3, 4}, Pairs{5}, Pairs{6}));
  EXPECT_TRUE(micro[1].is_first && !micro[1].is_last);
  EXPECT_TRUE(!micro[2].is_first && !micro[2].is_last);
  EXPECT_TRUE(!micro[3].is_first && micro[3].is_last);
  for (int i : {1, 2, 3}) {
    EXPECT_EQ(micro[size_t(i)].first_shard, 1);
    ASSERT_EQ(micro[size_t(i)].shards.size(), 1u);
    EXPECT_EQ(micro[size_t(i)].shards[0].first_target, 0);
  }
  EXPECT_EQ(micro[2].shards[0].target_rows, 4 + 5);
}

TEST(MicroBatches, OfADecoderOnlyModelHaveNoSource) {
  PairLengths lengths;
  lengths.source = {0, 0};
  lengths.target = {4, 5};

  const std::vector<MicroBatch> micro =
      micro_batches(batch_of({{0}, {1}}), lengths, 0, 2, {.micro_tokens = 9, .fuses_shards = true});

  ASSERT_EQ(micro.size(), 1u);
  EXPECT_EQ(micro[0].shards[1].first_source, 0);
  EXPECT_EQ(micro[0].shards[1].first_target, 4);
}

TEST(TokensOf, CountsBothSidesOfTheShardsInTheRangeAlone) {
  const Batch batch = batch_of({{0}, {1, 2}, {3}});

  EXPECT_EQ(tokens_of(batch, ten_each(), 1, 3), 30 + 2 + 3 + 4);
  EXPECT_EQ(tokens_of(batch, ten_each(), 2, 2), 0);
}

TEST(BatchPosition, KeepsItsShareOfAnEpochOfOtherBatches) {
  const auto moved = [](int64_t batch, int64_t count, int64_t new_count) {
    const BatchPosition position = at_same_share({3, batch}, count, new_count);
    EXPECT_EQ(position.epoch, 3);
    return position.batch;
  };
  EXPECT_EQ(moved(0, 10, 20), 0);
  EXPECT_EQ(moved(5, 10, 20), 10);
  EXPECT_EQ(moved(9, 10, 5), 4);
  EXPECT_EQ(moved(9, 10, 1), 0);
  for (int64_t batch = 0; batch < 7; ++batch) {
    EXPECT_EQ(moved(batch, 7, 7), batch);
    for (int64_t count = 1; count < 20; ++count) EXPECT_LT(moved(batch, 7, count), count);
  }
}

TEST(BatchSequence, GoesThroughEveryEpochAndSeeksAnywhere) {
  const PairLengths lengths = ten_each();
  const BatchConfig config = {.tokens = 30, .micro_tokens = 30, .shards = 2};
  BatchSequence walking(lengths, config, 7);
  BatchPosition position;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const EpochPlan plan(lengths, config, 7, epoch);
    for (int64_t b = 0; b < plan.batch_count(); ++b) {
      EXPECT_EQ(position.epoch, epoch);
      EXPECT_EQ(position.batch, b);
      BatchSequence seeking(lengths, config, 7);
      EXPECT_EQ(walking.at(position).pairs, plan.batch(b).pairs);
      EXPECT_EQ(seeking.at(position).pairs, plan.batch(b).pairs);
      position = walking.after(position);
    }
  }
}

}  // namespace
}  // namespace fathom::data
