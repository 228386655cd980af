// The formula against what devices allocate for everything that a rank of a run holds.
#include "launcher/memory_plan.h"

#include <gtest/gtest.h>

#include "launcher/devices.h"
#include "launcher/train/gradient_step.h"
#include "launcher/train/sharding.h"
#include "launcher/train/state_snapshot.h"
#include "tests/dist/rank_threads.h"

namespace fathom::launcher {
namespace {

Config small_config() {
  Config config;
  config.model.encoder_layers = config.model.decoder_layers = 2;
  config.model.width = 128;
  config.model.ffn_width = 512;
  config.model.vocabulary_size = config.data.vocabulary_size = 2000;
  config.batch.shards = 8;
  config.train.device = DeviceChoice::kReference;
  return config;
}

// By rank.
std::vector<int64_t> allocated(const Config& config, int ranks) {
  const std::vector<data::TokenPair> pairs = {{.source = {2}, .target = {3}}};
  const data::Dataset data = data::Dataset::from_pairs(pairs, false);
  std::vector<int64_t> bytes(static_cast<size_t>(ranks));
  dist::run_ranks(ranks, [&](dist::Communicator& group) {
    const std::unique_ptr<Device> device = make_device(config);
    model::Transformer model(config.model, *device, compute_type(config));
    Sharding sharding(config.dist, model.parameters(), group);
    optim::Adam adam(config.optimizer, sharding.slices());
    sharding.keep_own_masters();
    sharding.gather_weights();
    const GradientStep step(model, *device, data, group, sharding.ownership(),
                            {.reducer = {.reduction = config.dist.reduction,
                                         .outcome = sharding.outcome(),
                                         .shards = int(config.batch.shards)}});
    const observe::ParameterProbe probe(sharding.slices(), sharding.chunk_gather());
    StateSnapshot snapshot(model.parameters(), adam, sharding, group.rank() == 0);
    snapshot.begin();
    bytes[size_t(group.rank())] = device->allocated_bytes();
  });
  return bytes;
}

TEST(MemoryPlan, IsWhatRanksAllocate) {
  for (const auto& [reduction, precision] : {std::pair(dist::Reduction::kTree, Precision::kFp32),
                                             std::pair(dist::Reduction::kFast, Precision::kFp32),
                                             std::pair(dist::Reduction::kTree, Precision::kBf16)})
    for (const bool shards : {false, true})
      for (const int ranks : {1, 2, 4}) {
        Config config = small_config();
        config.dist.reduction = reduction;
        config.dist.shard_optimizer = shards;
        config.train.precision = precision;

        const MemoryPlan plan = plan_memory(config, {ranks});

        const std::vector<int64_t> bytes = allocated(config, ranks);
        const double most = double(*std::ranges::max_element(bytes));
        ASSERT_EQ(plan.by_ranks.size(), 1u);
        EXPECT_NEAR(double(plan.by_ranks[0].total()), most, 0.05 * most)
            << ranks << " ranks, sharded " << shards << ", fast "
            << (reduction == dist::Reduction::kFast) << ", bf16 "
            << (precision == Precision::kBf16);
        EXPECT_GT(plan.parameters, 1'000'000);
        EXPECT_GE(plan.save, 3 * 4 * plan.parameters + (16 << 20));
        EXPECT_LE(plan.save, 3 * 4 * plan.parameters * 101 / 100 + (64 << 20));
      }
}

TEST(MemoryPlan, CountsWorkingWeightsAndWideTypes) {
  Config config = small_config();
  const RankMemory f32 = plan_memory(config, {1}).by_ranks[0];
  config.train.precision = Precision::kBf16;
  const RankMemory bf16 = plan_memory(config, {1}).by_ranks[0];
  config.train.precision = Precision::kFp64;
  const RankMemory f64 = plan_memory(config, {1}).by_ranks[0];

  EXPECT_NEAR(double(bf16.weights), 1.5 * double(f32.weights), 0.02 * double(f32.weights));
  EXPECT_EQ(bf16.moments, f32.moments);
  EXPECT_EQ(f64.moments, 2 * f32.moments);
}

// Of each weight 2 bytes to compute with, and on its owner 4 of the master.
TEST(MemoryPlan, ShardsTheMastersWhereTheyAreApart) {
  Config config = small_config();
  config.train.precision = Precision::kBf16;
  const RankMemory whole = plan_memory(config, {4}).by_ranks[0];
  config.dist.shard_optimizer = true;
  const RankMemory sharded = plan_memory(config, {4}).by_ranks[0];

  EXPECT_NEAR(double(sharded.weights) / double(whole.weights), (2 + 4 / 4.0) / (2 + 4), 0.02);
}

TEST(MemoryPlan, ShardsTheMomentsAlone) {
  Config config = small_config();
  const RankMemory whole = plan_memory(config, {4}).by_ranks[0];
  config.dist.shard_optimizer = true;
  const RankMemory sharded = plan_memory(config, {4}).by_ranks[0];

  EXPECT_EQ(sharded.weights, whole.weights);
  EXPECT_EQ(sharded.gradients, whole.gradients);
  EXPECT_NEAR(double(sharded.moments), double(whole.moments) / 4, 0.05 * double(whole.moments));
}

TEST(MemoryPlan, OfAModelLargerThanTheMachineIsThereAtOnce) {
  Config config = small_config();
  config.model.width = 8192;
  config.model.ffn_width = 32768;
  config.model.encoder_layers = config.model.decoder_layers = 16;

  EXPECT_GT(plan_memory(config, {1}).by_ranks[0].total(), int64_t{1} << 39);
}

// The peak of a step's arena, by a device that computes.
TEST(MemoryPlan, ActivationsAreWhatAStepTakes) {
  for (const std::string topology : {"residual", "post-ln", "hyper-connections", "denseformer"})
    for (const bool recomputes : {false, true})
      for (const bool is_fast : {false, true}) {
        Config config = small_config();
        config.model.topology = topology;
        config.model.recompute_activations = recomputes;
        config.model.width = 32;
        config.model.ffn_width = 64;
        config.batch = {.tokens = 160, .micro_tokens = 80, .shards = 4};
        config.data.max_length = 39;
        if (is_fast) config.dist.reduction = dist::Reduction::kFast;
        const std::vector<data::TokenPair> pairs(
            4, {.source = std::vector<int32_t>(39, 2), .target = std::vector<int32_t>(39, 3)});
        const data::Dataset data = data::Dataset::from_pairs(pairs, false);
        const std::unique_ptr<Device> device = make_device(config);
        model::Transformer model(config.model, *device, compute_type(config));
        const auto group = dist::make_local_group(1);
        GradientStep step(
            model, *device, data, *group[0], ownership_of(config.dist, model.parameters(), 1),
            {.reducer = {.reduction = config.dist.reduction, .shards = 4}, .micro_tokens = 80});
        const data::PairLengths lengths = data.lengths();

        (void)step.run(data::EpochPlan(lengths, config.batch, 1, 0).batch(0), 1, false);
        device->compute().synchronise();

        const double planned = double(plan_memory(config, {1}).activations);
        const double peak = double(device->arena().peak_bytes());
        const double pairs_of_a_pass = is_fast ? 1 : 2;  // planned for; a shard here has one
        EXPECT_GE(planned, peak) << topology << recomputes << is_fast;
        EXPECT_LE(planned, 1.1 * pairs_of_a_pass * peak) << topology << recomputes << is_fast;
      }
}

TEST(MemoryPlan, ActivationsGrowWithTheMicroBatch) {
  Config config = small_config();
  config.dist.reduction = dist::Reduction::kFast;
  config.batch.micro_tokens = 1028;  // four pairs
  const double small = double(plan_memory(config, {1}).activations);
  config.batch.micro_tokens = 2056;

  EXPECT_NEAR(double(plan_memory(config, {1}).activations) / small, 2, 0.2);
}

TEST(MemoryPlan, HasALineForEveryPowerOfTwoUpToTheShards) {
  Config config = small_config();
  config.batch.shards = 6;

  const std::string text = describe_memory(config);

  EXPECT_EQ(std::ranges::count(text, '\n'), 7);  // three lines of head, one about saves
  EXPECT_NE(text.find("with 2000 pieces"), text.npos);
  EXPECT_NE(text.find("\n          4 "), text.npos);
}

}  // namespace
}  // namespace fathom::launcher
