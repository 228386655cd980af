// Gradient reducer against the plain recursive definition of the summation tree; called on all
// ranks of a group, for threads and for MPI.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/philox.h"
#include "dist/gradient_reducer.h"
#include "dist/reduction_tree.h"

namespace fathom::dist {

inline constexpr int64_t kParameters = 1003;  // no multiple of any bucket length in use

// Gradient of one shard: values of very different sizes, so that the order of summation shows.
// Made once and kept: all ranks and cases use the same.
template <class T>
const std::vector<T>& shard_gradient(int step, int shard) {
  static std::mutex mutex;
  static std::map<std::pair<int, int>, std::vector<T>> made;
  const std::lock_guard lock(mutex);
  std::vector<T>& values = made[{step, shard}];
  if (!values.empty()) return values;
  const PhiloxStream random(uint64_t(1000 * step + shard), "gradient");
  for (uint64_t i = 0; i < uint64_t(kParameters); ++i)
    values.push_back(T(random.normal(i) * std::exp(3 * random.normal(i + 100000))));
  return values;
}

// The definition, literally.
template <class T>
std::vector<T> recursive_sum(int step, int begin, int width, int shards) {
  if (width == 1) return shard_gradient<T>(step, begin);
  std::vector<T> sum = recursive_sum<T>(step, begin, width / 2, shards);
  if (begin + width / 2 >= shards) return sum;
  const std::vector<T> right = recursive_sum<T>(step, begin + width / 2, width / 2, shards);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

template <class T>
std::vector<T> tree_sum(int step, int shards) {
  int width = 1;
  while (width < shards) width *= 2;
  return recursive_sum<T>(step, 0, width, shards);
}

// Splits the buffer into ranges of up to 90 elements, shuffled; leaves a few out.
inline std::vector<std::pair<int64_t, int64_t>> random_ranges(uint64_t seed) {
  const PhiloxStream random(seed, "ready");
  std::vector<std::pair<int64_t, int64_t>> ranges;
  uint64_t draw = 0;
  for (int64_t offset = 0; offset < kParameters;) {
    const int64_t count = std::min(int64_t(random.bits(draw++) % 91), kParameters - offset);
    if (random.bits(draw++) % 10 != 0) ranges.emplace_back(offset, count);
    offset += count;
  }
  for (size_t i = ranges.size(); i > 1; --i)
    std::swap(ranges[i - 1], ranges[random.bits(draw++) % i]);
  return ranges;
}

// Chunks of `chunk` elements, the last one shorter.
inline Ownership even_chunks(int ranks, int64_t count, int64_t bucket, int64_t chunk = 1) {
  std::vector<int64_t> chunks;
  for (int64_t at = 0; at < count; at += chunk) chunks.push_back(at);
  return {chunks, count, bucket, ranks};
}

// One step: each range is filled, then reported as ready. On a device of the host the test may read
// tensors, since the compute context runs everything at once.
template <class T>
GradientSum reduce_step(Communicator& group, GradientReducer& reducer, int step, int shards) {
  const ShardRange owned = shard_range(group.rank(), group.size(), shards);
  for (int shard = owned.begin; shard < owned.end; ++shard) {
    const std::vector<T>& gradient = shard_gradient<T>(step, shard);
    T* const into = reducer.begin_shard().data<T>();
    const auto ranges = random_ranges(uint64_t(step * 100 + shard));
    std::vector<bool> done(gradient.size(), false);
    for (const auto& [offset, count] : ranges) {
      for (int64_t i = offset; i < offset + count; ++i) {
        into[i] += gradient[size_t(i)];
        done[size_t(i)] = true;
      }
      reducer.ready(offset, count);
    }
    for (size_t i = 0; i < gradient.size(); ++i)
      if (!done[i]) into[i] += gradient[i];
    reducer.end_shard();
  }
  return reducer.finish();
}

// Both outcomes in turn: check(sum, step) of three steps each, the owned ranges being the right
// ones.
template <class T, class Check>
void for_each_sum(Communicator& group, ReducerOptions options, int64_t bucket, const Check& check) {
  for (const Outcome outcome : {Outcome::kWhole, Outcome::kOwned}) {
    options.outcome = outcome;
    const std::unique_ptr<Device> device = tensor::make_reference_device();
    const Ownership ownership = even_chunks(group.size(), kParameters, bucket, 7);
    const std::vector<Slice> expected =
        outcome == Outcome::kWhole ? std::vector<Slice>{{.offset = 0, .count = kParameters}}
                                   : ownership.ranges(group.rank());
    GradientReducer reducer(group, *device, options, ownership, tensor::dtype_of<T>());
    const ReducerMemory memory = reducer_memory(options, ownership, group.rank());
    EXPECT_EQ(device->allocated_bytes(), (memory.buffers + memory.staging) * int64_t{sizeof(T)});
    for (int step = 0; step < 3; ++step) {
      const GradientSum sum = reduce_step<T>(group, reducer, step, options.shards);
      EXPECT_TRUE(std::ranges::equal(sum.owned, expected));
      check(sum, step);
    }
  }
}

template <class T>
void expect_tree_sum(Communicator& group, const ReducerOptions& options, int64_t bucket) {
  for_each_sum<T>(group, options, bucket, [&](const GradientSum& sum, int step) {
    const std::vector<T> expected = tree_sum<T>(step, options.shards);
    for (const Slice& range : sum.owned)
      EXPECT_EQ(0, std::memcmp(sum.gradient.data<T>() + range.offset,
                               &expected[size_t(range.offset)], size_t(range.count) * sizeof(T)))
          << options.shards << " shards, " << group.size() << " ranks, step " << step;
  });
}

template <class T>
void expect_fast_sum(Communicator& group, const ReducerOptions& options, int64_t bucket) {
  for_each_sum<T>(group, options, bucket, [&](const GradientSum& sum, int step) {
    std::vector<double> exact(size_t(kParameters), 0.0);
    std::vector<double> magnitude(size_t(kParameters), 0.0);
    for (int shard = 0; shard < options.shards; ++shard) {
      const std::vector<T>& gradient = shard_gradient<T>(step, shard);
      for (size_t i = 0; i < gradient.size(); ++i) {
        exact[i] += double(gradient[i]);
        magnitude[i] += std::abs(double(gradient[i]));
      }
    }
    const double epsilon = double(std::numeric_limits<T>::epsilon());
    for (const Slice& range : sum.owned)
      for (size_t i = size_t(range.offset); i < size_t(range.end()); ++i)
        // V - 1 additions, each off by half an epsilon
        ASSERT_TRUE(std::abs(double(sum.gradient.data<T>()[i]) - exact[i]) <=
                    options.shards * epsilon * magnitude[i]);
  });
}

}  // namespace fathom::dist
