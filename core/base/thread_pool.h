// A pool of threads for loops over tasks. How the work is divided into tasks depends on its shape
// alone, never on the number of threads, and no task adds into what another one writes; so the
// number of threads cannot change a bit of any result.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace fathom {

class ThreadPool {
 public:
  // `threads` counts the calling thread: 1 runs everything inline. Throws InvalidArgument below 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const { return threads_; }

  // Runs task(0) ... task(count - 1), each once, in any order on any thread; returns when all are
  // done. The first exception of a task is rethrown here. Not reentrant.
  void run(int64_t count, const std::function<void(int64_t)>& task);
  // The same; task(i, worker) with 0 <= worker < threads(), the same for all tasks of one thread.
  void run(int64_t count, const std::function<void(int64_t, int)>& task);

 private:
  struct Impl;
  int threads_;
  std::unique_ptr<Impl> impl_;
};

// Cores this process may run on (its affinity mask), at least 1.
[[nodiscard]] int available_cores();

}  // namespace fathom
