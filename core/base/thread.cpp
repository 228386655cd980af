#include "core/base/thread.h"

#include <chrono>
#include <exception>
#include <filesystem>
#include <iterator>
#include <latch>
#include <system_error>
#include <vector>

#include "core/base/error.h"

namespace fathom {

std::thread start_thread(std::string_view place, std::string_view which,
                         std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    fail<IoError>(place, ": ", which, " cannot be started: ", error.code().message(),
                  "; ask for fewer threads (train.threads, or --threads of translate), or raise "
                  "the limit: ulimit -u, pids.max of the container, ulimit -v for their stacks");
  }
}

// A thread that was joined counts until the kernel has put it away, which is when it leaves /proc.
void require_threads(std::string_view place, int count) {
  const auto running = [] {
    std::error_code ignored;
    std::filesystem::directory_iterator tasks("/proc/self/task", ignored), end;
    return std::distance(tasks, end);
  };
  const auto before = running();
  std::latch done(1);
  std::vector<std::thread> threads;
  std::exception_ptr error;
  try {
    for (int i = 1; i <= count; ++i)
      threads.push_back(
          start_thread(place, join("thread ", i, " of ", count), [&done] { done.wait(); }));
  } catch (...) {
    error = std::current_exception();
  }
  done.count_down();
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 1000 && running() > before; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (error) std::rethrow_exception(error);
}

Worker::Worker(std::string_view place)
    : thread_(start_thread(place, "its thread", [this] { work(); })) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::give(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void Worker::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace fathom
