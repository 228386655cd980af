#include "dist/local_communicator.h"

#include <atomic>
#include <chrono>

#include <gtest/gtest.h>

#include "collective_checks.h"
#include "expect_error.h"
#include "rank_threads.h"

namespace fathom::dist {
namespace {

using namespace std::chrono_literals;

class LocalGroup : public ::testing::TestWithParam<int> {};

TEST_P(LocalGroup, PerformsEveryCollective) { run_ranks(GetParam(), expect_every_collective); }

TEST_P(LocalGroup, RepeatsCollectivesWithoutMixingThem) {
  run_ranks(GetParam(), [](Communicator& group) {
    for (int i = 0; i < 200; ++i) {
      expect_all_reduce_sum<float>(group, 5);
      expect_all_reduce_max(group);
    }
  });
}

TEST_P(LocalGroup, DuplicateServesASecondThread) {
  run_ranks(GetParam(), expect_independent_duplicate);
}

TEST_P(LocalGroup, SumHasTheSameBitsOnEveryRank) {
  run_ranks(GetParam(), [](Communicator& group) {
    std::vector<float> values(100);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = 1.0f / float(i + 3) + 0.1f * float(group.rank());
    group.all_reduce_sum(std::span<float>(values));
    const std::string bytes(reinterpret_cast<const char*>(values.data()), 400);
    for (const std::string& other : group.all_gather(bytes)) EXPECT_EQ(other, bytes);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, LocalGroup, ::testing::Values(1, 2, 3, 4));

TEST(LocalGroupOf, NoRanksIsRefused) {
  expect_error<InvalidArgument>([] { (void)make_local_group(0); }, {"size is 0", "1 or more"});
}

// The other ranks wait in `wait`; rank 1 aborts.
template <class F>
void expect_released(F wait) {
  std::atomic<int> released = 0;
  run_ranks(3, [&](Communicator& group) {
    const std::unique_ptr<Communicator> twin = group.duplicate();
    if (group.rank() == 1) {
      std::this_thread::sleep_for(20ms);
      group.abort("out of memory", 7);
    } else {
      expect_error<DeviceError>([&] { wait(group, *twin); },
                                {"rank 1 aborted the group with code 7: out of memory"});
      ++released;
    }
  });
  EXPECT_EQ(released, 2);
}

TEST(LocalAbort, ReleasesPeersThatWait) {
  expect_released([](Communicator& group, Communicator&) { group.barrier(); });
  expect_released([](Communicator& group, Communicator&) { (void)group.all_reduce_max(1); });
}

TEST(LocalAbort, ReleasesPeersThatWaitInADuplicate) {
  expect_released([](Communicator&, Communicator& twin) { twin.barrier(); });
}

TEST(LocalAbort, RefusesLaterCallsAndKeepsTheFirstReason) {
  const auto group = make_local_group(2);
  group[0]->abort("first", 5);
  group[1]->abort("second", 7);

  expect_error<DeviceError>([&] { group[1]->barrier(); },
                            {"barrier: rank 0 aborted the group with code 5: first"});
}

TEST(LocalGroupOf, TwoReleasesTheOneWhosePeerHasLeft) {
  run_ranks(2, [](Communicator& group) {
    if (group.rank() == 0) return;  // destroyed with the thread's lambda
    SUCCEED();
  });
  auto group = make_local_group(2);
  std::thread leaver([peer = std::move(group[1])]() mutable {
    std::this_thread::sleep_for(20ms);
    peer.reset();
  });
  expect_error<DeviceError>([&] { group[0]->barrier(); }, {"rank 1 has left the group"});
  leaver.join();
}

template <class First, class Second>
void expect_mismatch(First first, Second second, const std::vector<std::string>& parts) {
  run_ranks(2, [&](Communicator& group) {
    expect_error<DeviceError>([&] { group.rank() == 0 ? first(group) : second(group); }, parts);
  });
}

TEST(LocalGroupOf, TwoNoticesDifferentCalls) {
  std::vector<float> three(3), four(4);
  std::vector<std::byte> bytes(2);
  expect_mismatch([](Communicator& g) { g.barrier(); },
                  [&](Communicator& g) { g.all_reduce_sum(std::span<float>(three)); },
                  {"different calls", "rank 0 barrier", "all_reduce_sum (float) of 12 bytes"});
  expect_mismatch([&](Communicator& g) { g.all_reduce_sum(std::span<float>(three)); },
                  [&](Communicator& g) { g.all_reduce_sum(std::span<float>(four)); },
                  {"of 12 bytes", "of 16 bytes"});
  expect_mismatch([&](Communicator& g) { g.broadcast(std::span(bytes), 0); },
                  [&](Communicator& g) { g.broadcast(std::span(bytes), 1); }, {"root 0", "root 1"});
}

TEST(LocalGroupOf, TwoNoticesCountsThatDoNotMatch) {
  std::vector<float> in(3), out(3);
  const auto exchange = [&](std::vector<int64_t> send, std::vector<int64_t> receive) {
    return [=, &in](Communicator& g) {
      std::vector<float> buffer(3);
      g.all_to_all(std::span<const float>(in), send, std::span<float>(buffer), receive);
    };
  };
  expect_mismatch(exchange({1, 2}, {1, 2}), exchange({1, 2}, {1, 2}),
                  {"rank 0 sends 8 bytes to rank 1, which expects 4"});

  const auto gather = [&](std::vector<int64_t> counts) {
    return [=](Communicator& g) {
      std::vector<float> mine(size_t(counts[size_t(g.rank())])), all(3);
      g.all_gather(std::span<const float>(mine), counts, std::span<float>(all));
    };
  };
  expect_mismatch(gather({1, 2}), gather({2, 1}), {"counts of all_gather on rank 1"});
}

TEST(Communicator, ChecksEachRuleBeforeTheCall) {
  const auto handle = std::move(make_local_group(1).front());
  Communicator& group = *handle;
  std::vector<float> three(3), other(3);
  std::vector<std::byte> bytes(2);
  using C = std::vector<int64_t>;
  const std::span<const float> in(three);
  const std::span<float> out(other);

  const auto refuse = [](auto&& call, const std::vector<std::string>& parts) {
    expect_error<InvalidArgument>(call, parts);
  };
  refuse([&] { group.broadcast(std::span(bytes), 1); }, {"broadcast: root is 1", "0 to 0"});
  refuse([&] { group.broadcast(std::span(bytes), -1); }, {"root is -1"});
  refuse([&] { group.all_gather(in, C{1, 2}, out); }, {"got 2 counts", "one per rank (1)"});
  refuse([&] { group.all_gather(in, C{4}, out); }, {"has 3 elements", "add to 4"});
  refuse([&] { group.all_gather(in.first(2), C{3}, out); }, {"brings 2 elements", "count is 3"});
  refuse([&] { group.all_gather(in, C{-3}, out); }, {"is -3"});
  refuse([&] { group.all_gather(in, C{3}, std::span<float>(three)); }, {"overlap"});
  refuse([&] { group.all_to_all(in, C{2}, out, C{3}); }, {"the input has 3", "add to 2"});
  refuse([&] { group.all_to_all(in, C{3}, out, C{1}); }, {"the output has 3", "add to 1"});
  refuse([&] { group.all_to_all(in, C{3}, out.first(2), C{2}); }, {"sends itself 3", "expects 2"});
}

}  // namespace
}  // namespace fathom::dist
