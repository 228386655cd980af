// What every Communicator must do, for any number of ranks; called on all ranks of a group. Small
// integers, so that any order of summation is exact and the tests are for equality.
#pragma once

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "dist/communicator.h"

namespace fathom::dist {

template <class T>
void expect_all_reduce_sum(Communicator& group, int64_t n) {
  std::vector<T> values(size_t(n), T{});
  for (int64_t i = 0; i < n; ++i) values[size_t(i)] = T(i % 7 + 10 * group.rank());

  group.all_reduce_sum(std::span<T>(values));

  const int64_t ranks = group.size();
  for (int64_t i = 0; i < n; ++i)
    ASSERT_EQ(values[size_t(i)], T(ranks * (i % 7) + 10 * ranks * (ranks - 1) / 2)) << i;
}

// Part r has n + r - 1 elements, but at least none.
template <class T>
void expect_reduce_scatter_sum(Communicator& group, int64_t n) {
  std::vector<int64_t> counts;
  std::vector<T> values, expected;
  const int64_t ranks = group.size();
  for (int r = 0; r < group.size(); ++r) {
    counts.push_back(std::max<int64_t>(0, n + r - 1));
    for (int64_t i = 0; i < counts.back(); ++i) {
      values.push_back(T(i % 7 + r + 10 * group.rank()));
      if (r == group.rank())
        expected.push_back(T(ranks * (i % 7 + r) + 10 * ranks * (ranks - 1) / 2));
    }
  }
  std::vector<T> part(expected.size(), T(-1));

  group.reduce_scatter_sum(std::span<const T>(values), counts, std::span<T>(part));

  EXPECT_EQ(part, expected);
}

inline void expect_all_reduce_max(Communicator& group) {
  EXPECT_EQ(group.all_reduce_max(group.rank() == group.size() / 2 ? 1000 : -group.rank()), 1000);
  EXPECT_EQ(group.all_reduce_max(-5 - group.rank()), -5);
  const int64_t large = int64_t{1} << 60;
  EXPECT_EQ(group.all_reduce_max(large + group.rank()), large + group.size() - 1);
  std::vector<int64_t> values = {group.rank(), -group.rank(), 7};
  group.all_reduce_max(std::span(values));
  EXPECT_EQ(values, (std::vector<int64_t>{group.size() - 1, 0, 7}));
}

inline void expect_broadcast(Communicator& group) {
  for (int root = 0; root < group.size(); ++root) {
    std::string text = group.rank() == root ? std::string(1000 + size_t(root), 'x') : "short";
    group.broadcast(text, root);
    EXPECT_EQ(text, std::string(1000 + size_t(root), 'x'));

    std::vector<std::byte> bytes(5, std::byte(group.rank()));
    group.broadcast(std::span(bytes), root);
    EXPECT_EQ(bytes, std::vector<std::byte>(5, std::byte(root)));
  }
  std::string empty = group.rank() == 0 ? "" : "not empty";
  group.broadcast(empty, 0);
  EXPECT_EQ(empty, "");
}

inline void expect_gathered_strings(Communicator& group) {
  const std::vector<std::string> all = group.all_gather(std::string(size_t(group.rank()) * 3, 'r'));
  ASSERT_EQ(all.size(), size_t(group.size()));
  for (int r = 0; r < group.size(); ++r) EXPECT_EQ(all[size_t(r)], std::string(size_t(r) * 3, 'r'));
}

// Rank r contributes (r + 2) % 3 elements, so that some contribute none.
template <class T>
void expect_all_gather(Communicator& group) {
  std::vector<int64_t> counts;
  std::vector<T> expected;
  for (int r = 0; r < group.size(); ++r) {
    counts.push_back((r + 2) % 3);
    for (int64_t i = 0; i < counts.back(); ++i) expected.push_back(T(10 * r + i));
  }
  std::vector<T> mine;
  for (int64_t i = 0; i < counts[size_t(group.rank())]; ++i)
    mine.push_back(T(10 * group.rank() + i));
  std::vector<T> all(expected.size(), T(-1));

  group.all_gather(mine, counts, all);

  EXPECT_EQ(all, expected);
}

// Rank a sends (a + 2 b) % 4 elements to rank b.
template <class T>
void expect_all_to_all(Communicator& group) {
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
  std::vector<T> received(expected.size(), T(-1));

  group.all_to_all(send, send_counts, received, receive_counts);

  EXPECT_EQ(received, expected);
}

inline void expect_every_collective(Communicator& group) {
  for (const int64_t n : {0, 1, 3, 1000}) {
    expect_all_reduce_sum<float>(group, n);
    expect_all_reduce_sum<double>(group, n);
    expect_reduce_scatter_sum<float>(group, n);
    expect_reduce_scatter_sum<double>(group, n);
  }
  expect_all_reduce_max(group);
  expect_broadcast(group);
  expect_gathered_strings(group);
  expect_all_gather<float>(group);
  expect_all_gather<double>(group);
  expect_all_to_all<float>(group);
  expect_all_to_all<double>(group);
  group.barrier();
}

// Two threads of each rank, each with its own handle, at the same time.
inline void expect_independent_duplicate(Communicator& group) {
  const std::unique_ptr<Communicator> twin = group.duplicate();
  EXPECT_EQ(twin->rank(), group.rank());
  EXPECT_EQ(twin->size(), group.size());
  std::thread thread([&] {
    for (int i = 0; i < 50; ++i) expect_all_reduce_sum<float>(*twin, 10);
  });
  for (int i = 0; i < 50; ++i) expect_all_to_all<double>(group);
  thread.join();
}

}  // namespace fathom::dist
