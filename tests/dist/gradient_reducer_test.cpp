#include "dist/gradient_reducer.h"

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "expect_error.h"
#include "rank_threads.h"
#include "reducer_cases.h"

namespace fathom::dist {
namespace {

std::set<int> rank_counts(int shards) {
  std::set<int> counts = {1, 2, 3, 4, std::min(8, shards)};
  counts.erase(counts.upper_bound(shards), counts.end());
  return counts;
}

class Reducer : public ::testing::TestWithParam<std::tuple<int, Overlap>> {};

TEST_P(Reducer, TreeGivesTheBitsOfTheDefinitionForEveryNumberOfRanks) {
  const auto [shards, overlap] = GetParam();
  for (const int size : rank_counts(shards))
    for (const int64_t bucket_bytes : {200, 1 << 20}) {
      const ReducerOptions options = {
          .overlap = overlap, .bucket_bytes = bucket_bytes, .shards = shards};
      run_ranks(size, [&](Communicator& group) { expect_tree_sum<float>(group, options); });
      run_ranks(size, [&](Communicator& group) { expect_tree_sum<double>(group, options); });
    }
}

TEST_P(Reducer, FastIsTheSumUpToRounding) {
  const auto [shards, overlap] = GetParam();
  for (const int size : rank_counts(shards)) {
    const ReducerOptions options = {
        .reduction = Reduction::kFast, .overlap = overlap, .bucket_bytes = 200, .shards = shards};
    run_ranks(size, [&](Communicator& group) { expect_fast_sum<float>(group, options); });
    run_ranks(size, [&](Communicator& group) { expect_fast_sum<double>(group, options); });
  }
}

TEST_P(Reducer, EmptyShardsCountAsZeros) {
  const auto [shards, overlap] = GetParam();
  for (const int size : rank_counts(shards))
    run_ranks(size, [&, n = shards, o = overlap](Communicator& group) {
      GradientReducer<float> reducer(group, {.overlap = o, .bucket_bytes = 16, .shards = n}, 10);
      const ShardRange owned = shard_range(group.rank(), group.size(), n);
      for (int shard = owned.begin; shard < owned.end; ++shard) {
        const std::span<float> gradient = reducer.begin_shard();
        if (shard == 0) std::fill(gradient.begin(), gradient.end(), 3.0f);
        reducer.end_shard();
      }
      for (const float value : reducer.finish()) ASSERT_EQ(value, 3.0f);
    });
}

INSTANTIATE_TEST_SUITE_P(Shards, Reducer,
                         ::testing::Combine(::testing::Values(1, 2, 5, 8, 24),
                                            ::testing::Values(Overlap::kOff, Overlap::kOn)));

// Otherwise the tests above would prove nothing about the order.
TEST(ReducerCases, SumsDependOnTheOrder) {
  const std::vector<float> tree = tree_sum<float>(0, 8);
  std::vector<float> sequential = shard_gradient<float>(0, 0);
  for (int shard = 1; shard < 8; ++shard) {
    const std::vector<float> gradient = shard_gradient<float>(0, shard);
    for (size_t i = 0; i < sequential.size(); ++i) sequential[i] += gradient[i];
  }

  EXPECT_NE(tree, sequential);
}

TEST(Reducer, FastFusesSeveralShardsInOneBackward) {
  run_ranks(2, [](Communicator& group) {
    GradientReducer<double> reducer(group, {.reduction = Reduction::kFast, .shards = 6}, 4);
    const std::span<double> first = reducer.begin_shard(2);
    first[0] += 1;
    reducer.ready(0, 4);  // not the last: ignored
    reducer.end_shard();
    const std::span<double> second = reducer.begin_shard();
    EXPECT_EQ(second[0], 1);
    second[3] += 2;
    reducer.ready(0, 4);
    reducer.end_shard();
    const std::span<const double> sum = reducer.finish();
    EXPECT_EQ(std::vector<double>(sum.begin(), sum.end()), (std::vector<double>{2, 0, 0, 4}));
  });
}

TEST(Reducer, OverlapReducesCompleteBucketsBeforeFinish) {
  run_ranks(2, [](Communicator& group) {
    GradientReducer<float> reducer(group,
                                   {.overlap = Overlap::kOn, .bucket_bytes = 16, .shards = 2}, 8);
    const std::span<float> gradient = reducer.begin_shard();
    std::fill(gradient.begin(), gradient.end(), 1.0f);
    reducer.ready(0, 4);
    group.barrier();  // now both threads may exchange bucket 0 while bucket 1 is open
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gradient[7] = 5;
    reducer.end_shard();
    const std::span<const float> sum = reducer.finish();
    EXPECT_EQ(sum[0], 2);
    EXPECT_EQ(sum[7], 10);
    EXPECT_GT(reducer.reduce_seconds(), 0);
    EXPECT_GT(reducer.wait_seconds(), 0);
  });
}

TEST(Reducer, HoldsOneBufferPerPartialSum) {
  const auto memory = [](Reduction reduction, int size, int shards) {
    std::vector<int64_t> buffers(size_t(size), 0);
    run_ranks(size, [&](Communicator& group) {
      GradientReducer<float> reducer(group, {.reduction = reduction, .shards = shards}, 100);
      buffers[size_t(group.rank())] = reducer.memory_bytes() / 400;
    });
    return buffers;
  };
  EXPECT_EQ(memory(Reduction::kTree, 1, 8), std::vector<int64_t>({4}));
  EXPECT_EQ(memory(Reduction::kTree, 2, 8), std::vector<int64_t>({3, 3}));
  EXPECT_EQ(memory(Reduction::kTree, 8, 8), std::vector<int64_t>(8, 1));
  EXPECT_EQ(memory(Reduction::kFast, 1, 8), std::vector<int64_t>({1}));
}

TEST(Reducer, BuffersAreAligned) {
  run_ranks(1, [](Communicator& group) {
    GradientReducer<float> reducer(group, {.shards = 3}, 7);
    for (int shard = 0; shard < 3; ++shard) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(reducer.begin_shard().data()) % 64, 0u);
      reducer.end_shard();
    }
  });
}

class LostPeer : public ::testing::TestWithParam<Overlap> {};

TEST_P(LostPeer, ReleasesTheRanksThatReduce) {
  std::atomic<int> released = 0;
  run_ranks(3, [&](Communicator& group) {
    GradientReducer<float> reducer(group, {.overlap = GetParam(), .bucket_bytes = 64, .shards = 3},
                                   100);
    std::fill_n(reducer.begin_shard().data(), 100, 1.0f);
    reducer.ready(0, 50);
    if (group.rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      group.abort("non-finite loss", 5);
      return;
    }
    reducer.end_shard();
    expect_error<DeviceError>([&] { (void)reducer.finish(); },
                              {"rank 2 aborted the group", "non-finite loss"});
    ++released;
  });
  EXPECT_EQ(released, 2);
}

INSTANTIATE_TEST_SUITE_P(Reducer, LostPeer, ::testing::Values(Overlap::kOff, Overlap::kOn));

TEST(Reducer, RefusesCallsOutOfOrder) {
  const auto handle = std::move(make_local_group(1).front());
  Communicator& group = *handle;
  GradientReducer<float> reducer(group, {.shards = 2}, 10);
  const auto refuse = [](auto&& call, const std::vector<std::string>& parts) {
    expect_error<InvalidArgument>(call, parts);
  };

  refuse([&] { reducer.ready(0, 1); }, {"ready outside of a shard"});
  refuse([&] { reducer.end_shard(); }, {"end_shard without begin_shard"});
  refuse([&] { (void)reducer.begin_shard(2); }, {"2 shards in one backward", "tree"});
  (void)reducer.begin_shard();
  refuse([&] { (void)reducer.begin_shard(); }, {"before end_shard"});
  reducer.end_shard();
  refuse([&] { (void)reducer.finish(); }, {"finish after 1 of this rank's 2 shards"});
  (void)reducer.begin_shard();
  refuse([&] { (void)reducer.finish(); }, {"still open"});
  reducer.ready(0, 5);
  refuse([&] { reducer.ready(4, 2); }, {"[4, 6)", "announced before"});
  refuse([&] { reducer.ready(8, 3); }, {"[8, 11)", "leaves the buffer of 10"});
  reducer.end_shard();
  refuse([&] { (void)reducer.begin_shard(); }, {"shard 3 of a rank that owns 2"});
  EXPECT_EQ(reducer.finish().size(), 10u);
}

TEST(Reducer, RefusesOptionsOutOfRange) {
  run_ranks(2, [](Communicator& group) {
    const auto make = [&](ReducerOptions options, int64_t count) {
      return [&group, options, count] { GradientReducer<float>(group, options, count); };
    };
    expect_error<InvalidArgument>(make({.shards = 1}, 5), {"2 ranks and 1 shards", "batch.shards"});
    expect_error<InvalidArgument>(make({.bucket_bytes = 3}, 5), {"bucket_bytes is 3"});
    expect_error<InvalidArgument>(make({}, 0), {"0 parameters"});
    expect_error<DeviceError>(make({.bucket_bytes = int64_t{1} << 60}, int64_t{1} << 58),
                              {"3 buffers of", "this machine has", "dist.reduction: fast"});
  });
}

}  // namespace
}  // namespace fathom::dist
