#include "dist/gradient_reducer.h"

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "expect_error.h"
#include "rank_threads.h"
#include "reducer_cases.h"

namespace fathom::dist {
namespace {

// A reducer of one rank and the device it is on.
struct OnDevice {
  std::unique_ptr<Device> device = tensor::make_reference_device();
  GradientReducer reducer;

  // Buckets of `bucket` elements that a rank may own one by one.
  OnDevice(Communicator& group, const ReducerOptions& options, int64_t count, int64_t bucket = 1000,
           DType dtype = DType::kF32)
      : reducer(group, *device, options, even_chunks(group.size(), count, bucket), dtype) {}
};

std::set<int> rank_counts(int shards) {
  std::set<int> counts = {1, 2, 3, 4, std::min(8, shards)};
  counts.erase(counts.upper_bound(shards), counts.end());
  return counts;
}

class Reducer : public ::testing::TestWithParam<std::tuple<int, Overlap>> {};

TEST_P(Reducer, TreeGivesTheBitsOfTheDefinitionForEveryNumberOfRanks) {
  const auto [shards, overlap] = GetParam();
  for (const int size : rank_counts(shards))
    for (const int64_t bucket : {5, 50, 1 << 20}) {
      const ReducerOptions options = {.overlap = overlap, .shards = shards};
      run_ranks(size, [&](Communicator& group) { expect_tree_sum<float>(group, options, bucket); });
      run_ranks(size,
                [&](Communicator& group) { expect_tree_sum<double>(group, options, bucket); });
    }
}

TEST_P(Reducer, FastIsTheSumUpToRounding) {
  const auto [shards, overlap] = GetParam();
  for (const int size : rank_counts(shards)) {
    const ReducerOptions options = {
        .reduction = Reduction::kFast, .overlap = overlap, .shards = shards};
    run_ranks(size, [&](Communicator& group) { expect_fast_sum<float>(group, options, 50); });
    run_ranks(size, [&](Communicator& group) { expect_fast_sum<double>(group, options, 25); });
  }
}

TEST_P(Reducer, EmptyShardsCountAsZeros) {
  const auto [shards, overlap] = GetParam();
  for (const int size : rank_counts(shards))
    run_ranks(size, [&, n = shards, o = overlap](Communicator& group) {
      OnDevice on(group, {.overlap = o, .shards = n}, 10, 4);
      const ShardRange owned = shard_range(group.rank(), group.size(), n);
      for (int shard = owned.begin; shard < owned.end; ++shard) {
        const Tensor gradient = on.reducer.begin_shard();
        if (shard == 0) std::fill_n(gradient.data<float>(), 10, 3.0f);
        on.reducer.end_shard();
      }
      const Tensor sum = on.reducer.finish().gradient;
      for (int64_t i = 0; i < 10; ++i) ASSERT_EQ(sum.data<float>()[i], 3.0f);
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
    OnDevice on(group, {.reduction = Reduction::kFast, .shards = 6}, 4, 1000, DType::kF64);
    GradientReducer& reducer = on.reducer;
    double* const first = reducer.begin_shard(2).data<double>();
    first[0] += 1;
    reducer.ready(0, 4);  // not the last: ignored
    reducer.end_shard();
    double* const second = reducer.begin_shard().data<double>();
    EXPECT_EQ(second[0], 1);
    second[3] += 2;
    reducer.ready(0, 4);
    reducer.end_shard();
    const Tensor sum = reducer.finish().gradient;
    EXPECT_EQ(std::vector<double>(sum.data<double>(), sum.data<double>() + 4),
              (std::vector<double>{2, 0, 0, 4}));
  });
}

TEST(Reducer, OverlapReducesCompleteBucketsBeforeFinish) {
  run_ranks(2, [](Communicator& group) {
    OnDevice on(group, {.overlap = Overlap::kOn, .shards = 2}, 8, 4);
    GradientReducer& reducer = on.reducer;
    float* const gradient = reducer.begin_shard().data<float>();
    std::fill_n(gradient, 8, 1.0f);
    reducer.ready(0, 4);
    group.barrier();  // now both queues may exchange bucket 0 while bucket 1 is open
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gradient[7] = 5;
    reducer.end_shard();
    const Tensor sum = reducer.finish().gradient;
    EXPECT_EQ(sum.data<float>()[0], 2);
    EXPECT_EQ(sum.data<float>()[7], 10);
    EXPECT_GT(reducer.reduce_seconds(), 0);
    EXPECT_GT(reducer.wait_seconds(), 0);
  });
}

TEST(Reducer, HoldsOneBufferPerPartialSum) {
  const auto memory = [](Reduction reduction, int size, int shards) {
    std::vector<int64_t> buffers(size_t(size), 0);
    run_ranks(size, [&](Communicator& group) {
      const OnDevice on(group, {.reduction = reduction, .shards = shards}, 100);
      buffers[size_t(group.rank())] = on.reducer.memory_bytes() / 400;
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
    OnDevice on(group, {.shards = 3}, 7);
    for (int shard = 0; shard < 3; ++shard) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(on.reducer.begin_shard().address()) % 64, 0u);
      on.reducer.end_shard();
    }
  });
}

// For the reducer, where a test must see or stop each sum of a bucket: fast mode only.
// Duplicates share the record.
class Spy final : public Communicator {
 public:
  struct Record {
    std::mutex mutex;
    std::vector<const float*> buckets;  // first elements, in the order of the sums
    int sums_that_work = 1000;
  };
  Spy(Communicator& inner, Record& record)
      : Communicator(inner.rank(), inner.size()), inner_(inner), record_(record) {}

 private:
  Spy(std::unique_ptr<Communicator> inner, Record& record) : Spy(*inner, record) {
    owned_ = std::move(inner);
  }
  void do_all_reduce_sum(std::span<float> values) override {
    {
      const std::lock_guard lock(record_.mutex);
      require<DeviceError>(int(record_.buckets.size()) < record_.sums_that_work, "link down");
      record_.buckets.push_back(values.data());
    }
    inner_.all_reduce_sum(values);
  }
  std::unique_ptr<Communicator> do_duplicate() override {
    return std::unique_ptr<Communicator>(new Spy(inner_.duplicate(), record_));
  }
  void do_abort(std::string_view reason, int exit_code) noexcept override {
    inner_.abort(reason, exit_code);
  }
  void do_all_reduce_sum(std::span<double>) override { refuse(); }
  void do_reduce_scatter_sum(std::span<const float>, Counts, std::span<float>) override {
    refuse();
  }
  void do_reduce_scatter_sum(std::span<const double>, Counts, std::span<double>) override {
    refuse();
  }
  void do_all_reduce_max(std::span<int64_t>) override { refuse(); }
  void do_broadcast(std::span<std::byte>, int) override { refuse(); }
  void do_all_gather(std::span<const std::byte>, Counts, std::span<std::byte>) override {
    refuse();
  }
  void do_all_to_all(std::span<const std::byte>, Counts, std::span<std::byte>, Counts) override {
    refuse();
  }
  void do_barrier() override { refuse(); }
  [[noreturn]] static void refuse() { fail("spy: only sums of f32 are expected"); }

  Communicator& inner_;
  Record& record_;
  std::unique_ptr<Communicator> owned_;
};

constexpr ReducerOptions kFastOverlapped = {
    .reduction = Reduction::kFast, .overlap = Overlap::kOn, .shards = 2};

TEST(OverlappedReducer, ReducesInAscendingOrderWhateverTheOrderOfReady) {
  run_ranks(2, [](Communicator& group) {
    Spy::Record record;
    Spy spy(group, record);
    OnDevice on(spy, kFastOverlapped, 16, 4);
    const std::vector<std::array<int64_t, 4>> orders = {{3, 1, 0, 2}, {2, 3, 1, 0}};
    for (const std::array<int64_t, 4>& order : orders) {
      record.buckets.clear();
      const Tensor gradient = on.reducer.begin_shard();
      for (const int64_t bucket : order)  // other ranks, another order
        on.reducer.ready(4 * (group.rank() == 0 ? bucket : 3 - bucket), 4);
      on.reducer.end_shard();
      (void)on.reducer.finish();
      std::vector<const float*> expected;
      for (int64_t k = 0; k < 4; ++k) expected.push_back(gradient.data<float>() + 4 * k);
      EXPECT_EQ(record.buckets, expected);
    }
  });
}

TEST(OverlappedReducer, SumsACompleteBucketWhileOthersAreOpen) {
  run_ranks(2, [](Communicator& group) {
    Spy::Record record;
    Spy spy(group, record);
    OnDevice on(spy, kFastOverlapped, 16, 4);
    (void)on.reducer.begin_shard();
    on.reducer.ready(0, 4);
    const auto is_summed = [&] {
      const std::lock_guard lock(record.mutex);
      return record.buckets.size() == 1;
    };
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!is_summed() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(is_summed());
    on.reducer.end_shard();
    (void)on.reducer.finish();
  });
}

TEST(OverlappedReducer, ErrorSurfacesInFinishAndStays) {
  run_ranks(2, [](Communicator& group) {
    Spy::Record record;
    record.sums_that_work = 1;
    Spy spy(group, record);
    OnDevice on(spy, kFastOverlapped, 16, 4);
    (void)on.reducer.begin_shard();
    on.reducer.ready(0, 4);
    on.reducer.end_shard();

    for (int attempt = 0; attempt < 2; ++attempt)
      expect_error<DeviceError>([&] { (void)on.reducer.finish(); }, {"link down"});
    EXPECT_EQ(record.buckets.size(), 1u);
  });
}

TEST(OverlappedReducer, EndsWithBucketsOpen) {
  run_ranks(2, [](Communicator& group) {
    OnDevice on(group, kFastOverlapped, 16, 4);
    (void)on.reducer.begin_shard();
    on.reducer.ready(0, 4);
  });
}

class NoWait : public ::testing::TestWithParam<std::tuple<Reduction, Overlap, Outcome>> {};

TEST_P(NoWait, OfTheHostForTheDeviceInAStep) {
  const auto [reduction, overlap, outcome] = GetParam();
  run_ranks(2, [r = reduction, o = overlap, e = outcome](Communicator& group) {
    OnDevice on(group, {.reduction = r, .overlap = o, .outcome = e, .shards = 4}, 10, 4);
    for (int shard = 0; shard < 2; ++shard) {
      (void)on.reducer.begin_shard();
      on.reducer.ready(0, 10);
      on.reducer.end_shard();
    }
    (void)on.reducer.finish();
    EXPECT_EQ(on.device->host_waits(), 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Reducer, NoWait,
                         ::testing::Combine(::testing::Values(Reduction::kTree, Reduction::kFast),
                                            ::testing::Values(Overlap::kOff, Overlap::kOn),
                                            ::testing::Values(Outcome::kWhole, Outcome::kOwned)));

class LostPeer : public ::testing::TestWithParam<Overlap> {};

TEST_P(LostPeer, ReleasesTheRanksThatReduce) {
  std::atomic<int> released = 0;
  run_ranks(3, [&](Communicator& group) {
    OnDevice on(group, {.overlap = GetParam(), .shards = 3}, 100, 16);
    GradientReducer& reducer = on.reducer;
    std::fill_n(reducer.begin_shard().data<float>(), 100, 1.0f);
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
  OnDevice on(group, {.shards = 2}, 10);
  GradientReducer& reducer = on.reducer;
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
  refuse([&] { reducer.ready(4, 2); }, {"[4, 6)", "marked final before"});
  refuse([&] { reducer.ready(8, 3); }, {"[8, 11)", "leaves the buffer of 10"});
  reducer.end_shard();
  refuse([&] { (void)reducer.begin_shard(); }, {"shard 3 of a rank that owns 2"});
  EXPECT_EQ(reducer.finish().gradient.numel(), 10);
}

TEST(Reducer, RefusesOptionsOutOfRange) {
  run_ranks(2, [](Communicator& group) {
    const auto make = [&](ReducerOptions options, int64_t count) {
      return [&group, options, count] { OnDevice(group, options, count); };
    };
    expect_error<InvalidArgument>(make({.shards = 1}, 5), {"2 ranks and 1 shards", "batch.shards"});
    const auto device = tensor::make_reference_device();
    const auto give = [&](const Ownership& ownership) {
      return [&] { GradientReducer(group, *device, {}, ownership, DType::kF32); };
    };
    expect_error<DeviceError>(give(Ownership({{0}}, int64_t{1} << 58, 1, 2)),
                              {"3 buffers of", "this process may have", "dist.reduction: fast"});
    expect_error<InvalidArgument>(give(even_chunks(3, 10, 4)), {"3 ranks in a group of 2"});
  });
}

}  // namespace
}  // namespace fathom::dist
