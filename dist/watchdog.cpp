#include "dist/watchdog.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/thread.h"

namespace fathom::dist {
namespace {

using Clock = std::chrono::steady_clock;

void check_limit(Watchdog::Duration limit, std::string_view phase) {
  require(limit.count() > 0, "watchdog: limit for ", phase, " is ", limit.count(),
          " s, expected more than 0");
}

}  // namespace

struct Watchdog::Impl {
  struct Phase {
    std::string name;
    Duration limit;
  };

  std::mutex mutex = {};
  std::condition_variable stopping = {};
  bool stop = false;
  std::vector<Phase> phases = {};         // the last one counts
  Duration idle = Duration(0);            // since the last progress, as the ticks counted it
  Clock::time_point last = Clock::now();  // of the last tick or progress
  int64_t step = 0;
  std::function<void(const Expiry&)> on_expire = {};
  std::thread thread = {};

  // Needs the lock.
  void restart_clock() {
    idle = Duration(0);
    last = Clock::now();
  }

  // Ticks ten times per limit, at most ten times a second. A tick counts for no more than twice its
  // length: if it took longer the watchdog did not run, and perhaps the rank did not either.
  void watch() {
    std::unique_lock lock(mutex);
    while (!stop) {
      const Duration tick = std::min(phases.back().limit / 10, Duration(0.1));
      stopping.wait_for(lock, tick, [&] { return stop; });
      const Clock::time_point now = Clock::now();
      idle += std::min(Duration(now - last), 2 * tick);
      last = now;
      const Phase& phase = phases.back();
      if (stop || idle < phase.limit) continue;
      const Expiry expiry = {.phase = phase.name,
                             .seconds = idle.count(),
                             .limit_seconds = phase.limit.count(),
                             .step = step};
      lock.unlock();
      on_expire(expiry);
      return;
    }
  }
};

Watchdog::Watchdog(Duration limit, std::function<void(const Expiry&)> on_expire)
    : impl_(std::make_unique<Impl>()) {
  check_limit(limit, "step");
  impl_->phases.push_back({.name = "step", .limit = limit});
  impl_->on_expire = std::move(on_expire);
  impl_->thread = start_thread("watchdog", "its thread", [this] { impl_->watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  impl_->stopping.notify_all();
  impl_->thread.join();
}

void Watchdog::progress() {
  const std::lock_guard lock(impl_->mutex);
  impl_->restart_clock();
}

void Watchdog::progress(int64_t step) {
  const std::lock_guard lock(impl_->mutex);
  impl_->restart_clock();
  impl_->step = step;
}

void Watchdog::set_limit(Duration limit) {
  check_limit(limit, "step");
  const std::lock_guard lock(impl_->mutex);
  impl_->phases.front().limit = limit;
}

Watchdog::Section::Section(Watchdog& watchdog, std::string name, Duration limit)
    : watchdog_(watchdog) {
  check_limit(limit, name);
  const std::lock_guard lock(watchdog_.impl_->mutex);
  watchdog_.impl_->phases.push_back({.name = std::move(name), .limit = limit});
  watchdog_.impl_->restart_clock();
}

Watchdog::Section::~Section() {
  const std::lock_guard lock(watchdog_.impl_->mutex);
  watchdog_.impl_->phases.pop_back();
  watchdog_.impl_->restart_clock();
}

}  // namespace fathom::dist
