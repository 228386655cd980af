#include "dist/watchdog.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "expect_error.h"
#include "tests/support/thread_limit.h"

namespace fathom::dist {
namespace {

using namespace std::chrono_literals;
using Duration = Watchdog::Duration;

// Limits are wide, since the machine may be busy: what must not expire has 10 s.
class Recorder {
 public:
  std::function<void(const Watchdog::Expiry&)> callback() {
    return [this](const Watchdog::Expiry& expiry) {
      const std::lock_guard lock(mutex_);
      expiry_ = expiry;
      ++calls_;
      changed_.notify_all();
    };
  }
  // Waits up to 10 s.
  std::optional<Watchdog::Expiry> wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 10s, [&] { return calls_ > 0; });
    return expiry_;
  }
  int calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Watchdog::Expiry> expiry_;
  int calls_ = 0;
};

TEST(Watchdog, ReportsPhaseSecondsAndStepOnce) {
  Recorder recorder;
  Watchdog watchdog(Duration(0.05), recorder.callback());
  watchdog.progress(41);

  const auto expiry = recorder.wait();

  ASSERT_TRUE(expiry);
  EXPECT_EQ(expiry->phase, "step");
  EXPECT_EQ(expiry->step, 41);
  EXPECT_GE(expiry->seconds, 0.05);
  EXPECT_EQ(expiry->limit_seconds, 0.05);
  watchdog.progress(42);
  std::this_thread::sleep_for(150ms);
  EXPECT_EQ(recorder.calls(), 1);
}

TEST(Watchdog, StaysSilentWhileThereIsProgress) {
  Recorder recorder;
  Watchdog watchdog(Duration(0.5), recorder.callback());
  for (int i = 0; i < 80; ++i) {
    watchdog.progress();
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(recorder.calls(), 0);
}

TEST(Watchdog, SectionHasItsOwnLimit) {
  Recorder recorder;
  Watchdog watchdog(Duration(0.1), recorder.callback());
  const Watchdog::Section saving(watchdog, "save", Duration(10));
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(recorder.calls(), 0);
}

TEST(Watchdog, NamesTheInnermostSection) {
  Recorder recorder;
  Watchdog watchdog(Duration(10), recorder.callback());
  const Watchdog::Section validating(watchdog, "validate", Duration(10));
  const Watchdog::Section saving(watchdog, "save", Duration(0.05));

  const auto expiry = recorder.wait();

  ASSERT_TRUE(expiry);
  EXPECT_EQ(expiry->phase, "save");
}

TEST(Watchdog, LeavingASectionReturnsToTheOldLimit) {
  Recorder recorder;
  Watchdog watchdog(Duration(0.1), recorder.callback());
  { const Watchdog::Section saving(watchdog, "save", Duration(10)); }

  const auto expiry = recorder.wait();

  ASSERT_TRUE(expiry);
  EXPECT_EQ(expiry->phase, "step");
}

TEST(Watchdog, LimitCanBeChanged) {
  Recorder recorder;
  Watchdog watchdog(Duration(3600), recorder.callback());
  watchdog.set_limit(Duration(0.05));

  ASSERT_TRUE(recorder.wait());
}

TEST(Watchdog, TakesProgressFromManyThreads) {
  Recorder recorder;
  Watchdog watchdog(Duration(10), recorder.callback());
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) watchdog.progress(i);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(recorder.calls(), 0);
}

TEST(Watchdog, EndsAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  {
    Watchdog watchdog(Duration(3600), [](const Watchdog::Expiry&) {});
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(Watchdog, RefusesALimitOfZero) {
  const auto nothing = [](const Watchdog::Expiry&) {};
  expect_error<InvalidArgument>([&] { Watchdog(Duration(0), nothing); },
                                {"limit for step is 0 s", "more than 0"});
  Watchdog watchdog(Duration(10), nothing);
  expect_error<InvalidArgument>([&] { watchdog.set_limit(Duration(-1)); }, {"is -1 s"});
  expect_error<InvalidArgument>([&] { Watchdog::Section(watchdog, "save", Duration(0)); },
                                {"limit for save is 0 s"});
}

TEST(Watchdog, SaysThatItsThreadCannotBeStarted) {
  const auto limit = support::ThreadLimit::most(0);
  expect_error<IoError>([] { Watchdog(Duration(10), [](const Watchdog::Expiry&) {}); },
                        {"watchdog: its thread cannot be started", "ulimit -u"});
}

}  // namespace
}  // namespace fathom::dist
