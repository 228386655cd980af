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

// The definition, word by word.
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

// Cuts the buffer into ranges of up to 90 elements, shuffled; leaves a few out.
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

// One step: each range is filled, then announced. On a device of the host the test may look at
// tensors, the compute context having done at once what it was given.
template <class T>
std::vector<T> reduce_step(Communicator& group, GradientReducer& reducer, int step, int shards) {
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
  const Tensor sum = reducer.finish();
  return {sum.data<T>(), sum.data<T>() + sum.numel()};
}

template <class T>
void expect_tree_sum(Communicator& group, const ReducerOptions& options) {
  const std::unique_ptr<Device> device = tensor::make_reference_device();
  GradientReducer reducer(group, *device, options, kParameters, tensor::dtype_of<T>());
  for (int step = 0; step < 3; ++step) {
    const std::vector<T> expected = tree_sum<T>(step, options.shards);

    const std::vector<T> sum = reduce_step<T>(group, reducer, step, options.shards);

    EXPECT_EQ(0, std::memcmp(sum.data(), expected.data(), sum.size() * sizeof(T)))
        << options.shards << " shards, " << group.size() << " ranks, step " << step;
  }
}

template <class T>
void expect_fast_sum(Communicator& group, const ReducerOptions& options) {
  const std::unique_ptr<Device> device = tensor::make_reference_device();
  GradientReducer reducer(group, *device, options, kParameters, tensor::dtype_of<T>());
  for (int step = 0; step < 3; ++step) {
    const std::vector<T> sum = reduce_step<T>(group, reducer, step, options.shards);

    std::vector<double> exact(sum.size(), 0.0);
    std::vector<double> magnitude(sum.size(), 0.0);
    for (int shard = 0; shard < options.shards; ++shard) {
      const std::vector<T>& gradient = shard_gradient<T>(step, shard);
      for (size_t i = 0; i < sum.size(); ++i) {
        exact[i] += double(gradient[i]);
        magnitude[i] += std::abs(double(gradient[i]));
      }
    }
    const double epsilon = double(std::numeric_limits<T>::epsilon());
    for (size_t i = 0; i < sum.size(); ++i)  // V - 1 additions, each off by half an epsilon
      ASSERT_TRUE(std::abs(double(sum[i]) - exact[i]) <= options.shards * epsilon * magnitude[i]);
  }
}

}  // namespace fathom::dist
