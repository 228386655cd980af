#include "launcher/train/sharding.h"

#include <algorithm>
#include <cstring>

#include "tests/launcher/train/training_support.h"
#include "tests/support/expect_error.h"

namespace fathom::launcher {
namespace {

class ShardingTest : public ::testing::Test {
 protected:
  // f(store, sharding, group) on every one of `ranks` ranks.
  template <class F>
  void on(int ranks, bool shards_optimizer, const F& f) const {
    DistConfig config = small_config().dist;
    config.shard_optimizer = shards_optimizer;
    dist::run_ranks(ranks, [&](dist::Communicator& group) {
      const std::unique_ptr<Device> device = tensor::make_reference_device();
      model::Transformer model(small_config().model, *device, DType::kF32);
      f(model.parameters(), Sharding(config, model.parameters(), group), group);
    });
  }
};

TEST_F(ShardingTest, LeavesEveryRankEverythingUnlessAskedFor) {
  const auto expect_whole = [](const ParameterStore& store, const Sharding& sharding,
                               dist::Communicator& /*group*/) {
    EXPECT_FALSE(sharding.is_sharded());
    EXPECT_EQ(sharding.outcome(), dist::Outcome::kWhole);
    EXPECT_EQ(sharding.slices().size(), store.size());
    EXPECT_FALSE(sharding.chunk_gather());
    EXPECT_EQ(sharding.make_gather(store.device().copies()), nullptr);
  };
  on(3, false, expect_whole);
  on(1, true, expect_whole);  // alone there is nothing to share
}

TEST_F(ShardingTest, GivesEachElementToOneRank) {
  for (const int ranks : {2, 3})
    on(ranks, true,
       [&](const ParameterStore& store, const Sharding& sharding, dist::Communicator& group) {
         std::vector<double> owners(size_t(store.size()), 0);
         for (const Slice& range : sharding.slices().ranges())
           for (int64_t i = 0; i < range.count; ++i) owners[size_t(range.offset + i)] = 1;

         group.all_reduce_sum(std::span(owners));

         EXPECT_TRUE(sharding.is_sharded());
         EXPECT_EQ(sharding.outcome(), dist::Outcome::kOwned);
         EXPECT_GT(sharding.slices().size(), 0);
         EXPECT_EQ(owners, std::vector<double>(owners.size(), 1));
       });
}

TEST_F(ShardingTest, GathersTheWeightsFromTheirOwners) {
  on(3, true,
     [&](const ParameterStore& store, const Sharding& sharding, dist::Communicator& group) {
       float* weights = store.weights().data<float>();
       std::fill_n(weights, store.size(), -1.0f);
       for (const Slice& range : sharding.slices().ranges())
         std::fill_n(weights + range.offset, range.count, float(group.rank()));

       sharding.gather_weights();
       store.device().compute().synchronise();

       for (int rank = 0; rank < group.size(); ++rank)
         for (const Slice& range : sharding.ownership().ranges(rank))
           for (int64_t i = 0; i < range.count; ++i)
             ASSERT_EQ(weights[range.offset + i], float(rank)) << "element " << range.offset + i;
     });
}

// Masters in f32, matrices computed with in bf16: values that both hold, and vectors that bf16 would
// round.
TEST_F(ShardingTest, KeepsItsOwnMastersAndGathersWhatIsComputedWith) {
  DistConfig config = small_config().dist;
  config.shard_optimizer = true;
  config.bucket_mb = 0.001;
  for (const int ranks : {2, 3})
    dist::run_ranks(ranks, [&](dist::Communicator& group) {
      const std::unique_ptr<Device> device = tensor::make_reference_device();
      model::Transformer model(small_config().model, *device, DType::kBF16);
      ParameterStore& store = model.parameters();
      Context& context = device->compute();
      std::vector<float> before, after;
      for (int64_t i = 0; i < store.size(); ++i) {
        before.push_back(float(i) / 3);
        after.push_back(float(i) / 7);
      }
      context.upload(store.weights(), std::span<const float>(before));
      store.refresh_working();
      Sharding sharding(config, store, group);
      EXPECT_TRUE(support::throws_with<InvalidArgument>("before keep_own_masters()",
                                                        [&] { sharding.gather_weights(); }));

      sharding.keep_own_masters();

      EXPECT_EQ(store.weights().cols(), sharding.slices().size());
      // An update by hand: the masters, and the working weights of the same slices.
      const autograd::ParameterSlices& slices = sharding.slices();
      for (size_t r = 0; r < slices.ranges().size(); ++r) {
        const Slice range = slices.ranges()[r];
        context.upload(slices.masters_of(r), std::span<const float>(after).subspan(
                                                 size_t(range.offset), size_t(range.count)));
        context.run(&kernels::Kernels::add_scaled,
                    {.x = slices.masters_of(r),
                     .z = {},
                     .y = store.working().columns(range.offset, range.count),
                     .a = 1,
                     .b = 0});
      }
      sharding.gather_weights();
      context.synchronise();

      for (const auto& p : store.all())
        for (int64_t i = 0; i < p->numel(); ++i) {
          const float master = after[size_t(p->offset + i)];
          const double value = p->is_matrix() ? double(float(p->value.data<kernels::Bf16>()[i]))
                                              : double(p->value.data<float>()[i]);
          const double expected =
              p->is_matrix() ? double(float(kernels::Bf16(master))) : double(master);
          ASSERT_EQ(value, expected) << p->name << " " << i;
        }
    });
}

TEST_F(ShardingTest, GivesTheOptimizerItsSlicesOfTheHostsMoments) {
  for (const bool shards_optimizer : {false, true})
    on(2, shards_optimizer,
       [](const ParameterStore& store, const Sharding& sharding, dist::Communicator& /*group*/) {
         std::vector<float> numbers(size_t(store.size()), 0.0f);
         for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = float(i);
         std::vector<std::byte> flat(numbers.size() * sizeof(float));
         std::memcpy(flat.data(), numbers.data(), flat.size());
         const Tensor moments =
             store.device().compute().allocate(1, sharding.slices().size(), DType::kF32);

         sharding.upload(moments, flat);
         store.device().compute().synchronise();

         std::vector<float> expected;
         for (const Slice& range : sharding.slices().ranges())
           for (int64_t i = 0; i < range.count; ++i) expected.push_back(float(range.offset + i));
         EXPECT_EQ(floats(moments), expected);
       });
}

TEST_F(ShardingTest, MakesBucketsOfTheSizeThatTheConfigAsksFor) {
  on(1, false,
     [](const ParameterStore& store, const Sharding& /*sharding*/, dist::Communicator& /*group*/) {
       DistConfig config;
       config.bucket_mb = 100;
       EXPECT_EQ(ownership_of(config, store, 2).bucket_count(), 1);
       config.bucket_mb = 0.001;
       const dist::Ownership small = ownership_of(config, store, 2);
       EXPECT_GT(small.bucket_count(), 3);
       EXPECT_EQ(small.count(), store.size());
     });
}

}  // namespace
}  // namespace fathom::launcher
