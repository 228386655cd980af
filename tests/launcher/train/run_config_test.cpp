#include "launcher/train/run_config.h"

#include <filesystem>

#include "tests/launcher/train/training_support.h"
#include "tests/support/expect_error.h"

namespace fathom::launcher {
namespace {

using support::throws_with;

TEST(ForTheseRanks, RefusesMoreRanksThanTheShardsThatAreAskedFor) {
  Config config = small_config();
  config.run.directory = "run";
  EXPECT_NO_THROW((void)for_these_ranks(config, 6, 1));
  EXPECT_TRUE(throws_with<InvalidArgument>("batch.shards: 6 virtual shards cannot be shared out",
                                           [&] { (void)for_these_ranks(config, 7, 1); }));
  config.batch.shards = 0;  // a run that is resumed may have more
  EXPECT_NO_THROW((void)for_these_ranks(config, 7, 1));
}

TEST(ForTheseRanks, MakesPathsMeanTheSameFromAnyWorkingDirectory) {
  Config config = small_config();
  config.run.directory = "runs/../here";
  config.data.train = "texts/train";
  const std::filesystem::path current = std::filesystem::current_path();

  const Config settled = for_these_ranks(config, 1, 1);

  EXPECT_EQ(settled.run.directory, current / "here");
  EXPECT_EQ(settled.data.train, current / "texts" / "train");
  EXPECT_EQ(settled.data.valid, "") << "none stays none";
}

TEST(SettleShards, TakesThoseOfTheConfigThenOfTheRunThenOfTheBatch) {
  Config before;
  before.batch.shards = 32;
  const auto settled = [](int64_t given, const std::optional<Config>& earlier) {
    data::BatchConfig batch = {.tokens = 40'000, .micro_tokens = 4000, .shards = given};
    settle_shards(batch, earlier);
    return batch.shards;
  };
  EXPECT_EQ(settled(5, before), 5);
  EXPECT_EQ(settled(0, before), 32);
  EXPECT_EQ(settled(0, std::nullopt), 16);
}

TEST(CheckShards, AsksForOneAtLeastPerRankAndForMicroBatchesThatFit) {
  Config config = small_config();
  config.batch = {.tokens = 64, .micro_tokens = 16, .shards = 4};
  EXPECT_NO_THROW(check_shards(config, 4));
  EXPECT_THROW(check_shards(config, 5), InvalidArgument);
  config.batch.micro_tokens = 15;
  EXPECT_TRUE(throws_with<InvalidArgument>("raise batch.micro_tokens to 16, or batch.shards to 5",
                                           [&] { check_shards(config, 4); }));
  config.dist.reduction = dist::Reduction::kFast;  // which has several micro-batches to a shard
  EXPECT_NO_THROW(check_shards(config, 4));
}

}  // namespace
}  // namespace fathom::launcher
