#include "core/base/thread.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/thread_pool.h"
#include "tests/support/expect_error.h"
#include "tests/support/thread_limit.h"

namespace fathom {
namespace {

using support::ThreadLimit;
using support::throws_with;
using ::testing::ElementsAre;

TEST(StartThread, RunsTheBody) {
  std::atomic<bool> has_run = false;
  start_thread("here", "its thread", [&] { has_run = true; }).join();
  EXPECT_TRUE(has_run);
}

TEST(StartThread, NamesPlaceCauseAndEveryLimitWhereItCannot) {
  const ThreadLimit limit = ThreadLimit::failing(1);
  for (const char* part :
       {"here: thread 3 of 4 cannot be started: Resource temporarily unavailable", "train.threads",
        "--threads", "ulimit -u", "pids.max", "ulimit -v"}) {
    limit_threads(1, -1);
    EXPECT_TRUE(
        throws_with<IoError>(part, [] { start_thread("here", "thread 3 of 4", [] {}).join(); }));
  }
}

TEST(RequireThreads, ThrowsExactlyWhereOneIsMissing) {
  for (int there = 0; there < 3; ++there) {
    const ThreadLimit limit = ThreadLimit::most(there);
    EXPECT_TRUE(throws_with<IoError>(join("here: thread ", there + 1, " of 3 cannot be started"),
                                     [] { require_threads("here", 3); }));
  }
  const ThreadLimit limit = ThreadLimit::most(3);
  require_threads("here", 3);
  require_threads("here", 3);  // none of the first three is left
}

TEST(Worker, RunsAllItIsGivenInOrder) {
  std::vector<int> done;
  {
    Worker worker("here");
    for (const int i : {1, 2, 3}) (void)worker.run([&done, i] { done.push_back(i); });
    EXPECT_EQ(worker.run([] { return 7; }).get(), 7);
    (void)worker.run([&done] { done.push_back(4); });
  }
  EXPECT_THAT(done, ElementsAre(1, 2, 3, 4));
}

TEST(Worker, HandsOnAnExceptionAndGoesOn) {
  Worker worker("here");
  auto failed = worker.run([]() -> int { throw std::runtime_error("as it should"); });
  EXPECT_TRUE(throws_with<std::runtime_error>("as it should", [&] { failed.get(); }));
  EXPECT_EQ(worker.run([] { return 1; }).get(), 1);
}

TEST(Worker, SaysThatItsThreadCannotBeStarted) {
  const ThreadLimit limit = ThreadLimit::failing(1);
  EXPECT_TRUE(throws_with<IoError>("here: its thread cannot be started", [] { Worker("here"); }));
}

// The workers that were started wait for work; they must be gone, not waited for.
TEST(ThreadPool, IsRefusedWhicheverOfItsThreadsIsMissing) {
  for (int n = 1; n < 5; ++n) {
    const ThreadLimit limit = ThreadLimit::failing(n);
    EXPECT_TRUE(throws_with<IoError>(join("thread pool: thread ", n + 1, " of 5 cannot be started"),
                                     [] { ThreadPool pool(5); }));
  }
}

TEST(ThreadPool, RunsOnFewerThreadsWhereThatIsAccepted) {
  for (int most = 0; most < 5; ++most) {
    const ThreadLimit limit = ThreadLimit::most(most);
    ThreadPool pool(5, ThreadPool::Shortage::kAccept);
    EXPECT_EQ(pool.threads(), std::min(5, most + 1));
    std::atomic<int> runs = 0;
    pool.run(100, [&](int64_t) { ++runs; });
    EXPECT_EQ(runs, 100);
  }
}

}  // namespace
}  // namespace fathom
