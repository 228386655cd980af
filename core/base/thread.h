// Starting threads. The system refuses where a limit on them is reached, as containers have one:
// the error says what was wanted, and which limits to look at. A program needs few threads: those
// of a run all begin before its first step, so that none is missing later.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

namespace fathom {

// "PLACE: WHICH cannot be started: errno text; remedy" is an IoError. `body` must not throw.
[[nodiscard]] std::thread start_thread(std::string_view place, std::string_view which,
                                       std::function<void()> body);

// Starts `count` threads and ends them: for a library that does not look whether its own could be
// started, and then hangs or crashes. IoError as above when the system has not as many.
void require_threads(std::string_view place, int count);

// A thread that waits for work, for what must not have to be started when it is due.
class Worker {
 public:
  // IoError, beginning with `place`, when the thread cannot be started.
  explicit Worker(std::string_view place);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();  // after all it was given

  // Runs `f` after all that was given before; the future has its result or exception.
  template <class F>
  [[nodiscard]] auto run(F f) {
    auto task = std::make_shared<std::packaged_task<std::invoke_result_t<F>()>>(std::move(f));
    give([task] { (*task)(); });
    return task->get_future();
  }

 private:
  void give(std::function<void()> task);
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace fathom
