// What a data group must do, on both kinds of context and for any number of ranks; called on all
// ranks of a group. Small integers, as in collective_checks.h. Every rank has a device of its own.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "core/tensor/device.h"
#include "dist/data_group.h"
#include "dist/reduction_tree.h"

namespace fathom::dist {

template <class T>
[[nodiscard]] Tensor make_values(Context& context, const std::vector<T>& values) {
  const Tensor t = context.allocate(1, int64_t(values.size()), tensor::dtype_of<T>());
  context.upload(t, std::span(values));
  return t;
}

template <class T>
[[nodiscard]] std::vector<T> values_of(Context& context, const Tensor& t) {
  std::vector<T> values(size_t(t.numel()));
  context.download(std::span(values), t);
  return values;
}

template <class T>
void expect_sums(Context& context, DataGroup& group, int64_t n) {
  const int64_t ranks = group.size();
  std::vector<T> mine, expected;
  for (int64_t i = 0; i < n; ++i) {
    mine.push_back(T(i % 7 + 10 * group.rank()));
    expected.push_back(T(ranks * (i % 7) + 10 * ranks * (ranks - 1) / 2));
  }
  const Tensor t = make_values(context, mine);

  group.all_reduce_sum(context, t);

  EXPECT_EQ(values_of<T>(context, t), expected);
}

// Part r has (r + n) % 3 elements.
template <class T>
void expect_scattered_sums(Context& context, DataGroup& group, int64_t n) {
  std::vector<int64_t> counts;
  std::vector<T> values, expected;
  const int64_t ranks = group.size();
  for (int r = 0; r < group.size(); ++r) {
    counts.push_back((r + n) % 3);
    for (int64_t i = 0; i < counts.back(); ++i) {
      values.push_back(T(i + r + 10 * group.rank()));
      if (r == group.rank()) expected.push_back(T(ranks * (i + r) + 10 * ranks * (ranks - 1) / 2));
    }
  }
  const Tensor all = make_values(context, values);
  const Tensor part = context.allocate(1, int64_t(expected.size()), tensor::dtype_of<T>());

  group.reduce_scatter_sum(context, all, counts, part);

  EXPECT_EQ(values_of<T>(context, part), expected);
}

// Rank r contributes (r + 2) % 3 elements, so that some contribute none.
template <class T>
void expect_gathered(Context& context, DataGroup& group) {
  std::vector<int64_t> counts;
  std::vector<T> mine, expected;
  for (int r = 0; r < group.size(); ++r) {
    counts.push_back((r + 2) % 3);
    for (int64_t i = 0; i < counts.back(); ++i) {
      expected.push_back(T(10 * r + i));
      if (r == group.rank()) mine.push_back(expected.back());
    }
  }
  const Tensor all = context.allocate(1, int64_t(expected.size()), tensor::dtype_of<T>());
  const Tensor own = make_values(context, mine);

  group.all_gather(context, own, counts, all);

  EXPECT_EQ(values_of<T>(context, all), expected);
}

// The same of bf16, which is moved and never summed.
inline void expect_bf16_gathered(Context& context, DataGroup& group) {
  std::vector<int64_t> counts;
  std::vector<kernels::Bf16> mine;
  std::vector<uint16_t> expected;
  for (int r = 0; r < group.size(); ++r) {
    counts.push_back((r + 2) % 3);
    for (int64_t i = 0; i < counts.back(); ++i) {
      const kernels::Bf16 value(float(10 * r + i));
      expected.push_back(value.bits);
      if (r == group.rank()) mine.push_back(value);
    }
  }
  const Tensor all = context.allocate(1, int64_t(expected.size()), DType::kBF16);
  const Tensor own = make_values(context, mine);

  group.all_gather(context, own, counts, all);

  std::vector<uint16_t> got;
  for (const kernels::Bf16 value : values_of<kernels::Bf16>(context, all))
    got.push_back(value.bits);
  EXPECT_EQ(got, expected);
}

// Rank a sends (a + 2 b) % 4 elements to rank b.
template <class T>
void expect_exchanged(Context& context, DataGroup& group) {
  const auto count = [](int from, int to) { return int64_t{(from + 2 * to) % 4}; };
  const auto value = [](int from, int to, int64_t i) { return T(100 * from + 10 * to + i); };
  const int me = group.rank();
  std::vector<int64_t> send_counts, receive_counts;
  std::vector<T> send, expected;
  for (int r = 0; r < group.size(); ++r) {
    send_counts.push_back(count(me, r));
    receive_counts.push_back(count(r, me));
    for (int64_t i = 0; i < count(me, r); ++i) send.push_back(value(me, r, i));
    for (int64_t i = 0; i < count(r, me); ++i) expected.push_back(value(r, me, i));
  }
  const Tensor received = context.allocate(1, int64_t(expected.size()), tensor::dtype_of<T>());
  const Tensor sent = make_values(context, send);

  group.all_to_all(context, sent, send_counts, received, receive_counts);

  EXPECT_EQ(values_of<T>(context, received), expected);
}

inline void expect_every_data_operation_of(Device& device, Communicator& communicator) {
  const std::unique_ptr<Communicator> second = communicator.duplicate();
  const std::unique_ptr<DataGroup> on_compute = make_data_group(communicator, device),
                                   on_queue = make_data_group(*second, device);
  EXPECT_EQ(on_compute->rank(), communicator.rank());
  EXPECT_EQ(on_compute->size(), communicator.size());
  for (const auto& [context, group] : {std::pair{&device.compute(), on_compute.get()},
                                       {&device.communication(), on_queue.get()}}) {
    for (const int64_t n : {0, 1, 3, 1000}) {
      expect_sums<float>(*context, *group, n);
      expect_sums<double>(*context, *group, n);
      expect_scattered_sums<float>(*context, *group, n);
      expect_scattered_sums<double>(*context, *group, n);
    }
    expect_gathered<float>(*context, *group);
    expect_gathered<double>(*context, *group);
    expect_bf16_gathered(*context, *group);
    expect_exchanged<float>(*context, *group);
    expect_exchanged<double>(*context, *group);
  }
}

inline void expect_every_data_operation(Communicator& communicator) {
  expect_every_data_operation_of(*tensor::make_reference_device(), communicator);
}

// Every rank gets the values of all shards in shard order: sums do not depend on the ranks.
inline void expect_shard_order(Communicator& communicator, int shards) {
  const std::unique_ptr<Device> device = tensor::make_reference_device();
  Context& context = device->compute();
  const std::unique_ptr<DataGroup> group = make_data_group(communicator, *device);
  std::vector<int64_t> counts;
  std::vector<double> mine, expected;
  for (int r = 0; r < group->size(); ++r) {
    const ShardRange owned = shard_range(r, group->size(), shards);
    counts.push_back(2 * owned.count());
    for (int s = owned.begin; s < owned.end; ++s)
      if (r == group->rank()) mine.insert(mine.end(), {s + 0.25, -s * 1.0});
  }
  for (int s = 0; s < shards; ++s) expected.insert(expected.end(), {s + 0.25, -s * 1.0});
  const Tensor own = make_values(context, mine).reshaped(int64_t(mine.size()) / 2, 2);
  const Tensor all = context.allocate(shards, 2, DType::kF64);

  group->all_gather(context, own, counts, all);

  EXPECT_EQ(values_of<double>(context, all), expected);
}

}  // namespace fathom::dist
