#include "core/base/thread_pool.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace fathom {
namespace {

class EveryPool : public ::testing::TestWithParam<int> {};

TEST_P(EveryPool, RunsEveryTaskOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
  for (const int64_t count : {0, 1, 2, 3, 7, 1000}) {
    for (int round = 0; round < 20; ++round) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(count));

      pool.run(count, [&](int64_t i) { ++runs[size_t(i)]; });

      for (const auto& r : runs) ASSERT_EQ(r, 1) << count << " tasks";
    }
  }
}

TEST_P(EveryPool, RethrowsATasksExceptionAndStaysUsable) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 20; ++round) {
    EXPECT_TRUE(support::throws_with<std::runtime_error>("task 5", [&] {
      pool.run(100, [](int64_t i) {
        if (i == 5) throw std::runtime_error("task 5");
      });
    }));
    std::atomic<int> runs = 0;
    pool.run(100, [&](int64_t) { ++runs; });
    EXPECT_EQ(runs, 100);
  }
}

// All tasks wait for each other, so each needs a thread of its own.
TEST_P(EveryPool, HasTheNumberOfThreadsItReports) {
  ThreadPool pool(GetParam());
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> arrived = 0;

  pool.run(GetParam(), [&](int64_t) {
    {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    ++arrived;
    while (arrived < GetParam()) std::this_thread::yield();
  });

  EXPECT_EQ(int(threads.size()), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Threads, EveryPool, ::testing::Values(1, 2, 3, 5));

TEST(ThreadPool, WakesWorkersThatWentToSleep) {
  ThreadPool pool(3);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> runs = 0;
    pool.run(50, [&](int64_t) { ++runs; });
    EXPECT_EQ(runs, 50);
  }
}

TEST(ThreadPool, RefusesToHaveNoThread) {
  for (const int threads : {0, -1})
    EXPECT_TRUE(support::throws_with<InvalidArgument>(
        join("thread pool: needs at least 1 thread, got ", threads),
        [&] { ThreadPool pool(threads); }));
}

}  // namespace
}  // namespace fathom
