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
  // Where the system does not start that many: an error, or a pool of those there are.
  enum class Shortage { kRefuse, kAccept };

  // `threads` counts the calling thread: 1 runs everything inline. InvalidArgument below 1, IoError
  // for a shortage that is refused.
  explicit ThreadPool(int threads, Shortage shortage = Shortage::kRefuse);
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

}  // namespace fathom
