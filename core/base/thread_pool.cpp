#include "core/base/thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/thread.h"

namespace fathom {

// A new generation number signals new work. A worker spins for a moment (the next loop of a
// step is microseconds away) and then sleeps, so that an idle pool leaves its cores to others. Its
// destructor ends the workers, also of a pool that could not be completed.
struct ThreadPool::Impl {
  std::vector<std::thread> workers;
  std::mutex mutex;
  std::condition_variable wake, done;
  std::atomic<uint64_t> generation{0};
  std::atomic<bool> stopping{false};

  const std::function<void(int64_t, int)>* task = nullptr;
  int64_t count = 0;
  std::atomic<int64_t> next{0};
  std::atomic<int> working{0};
  std::exception_ptr error;

  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
      ++generation;
    }
    wake.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  void drain(int worker) {
    try {
      for (int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) (*task)(i, worker);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      next.store(count);
    }
  }

  void work(int worker) {
    uint64_t seen = 0;
    for (;;) {
      for (int spin = 0; spin < 2000 && generation.load(std::memory_order_acquire) == seen; ++spin)
        __builtin_ia32_pause();
      if (generation.load(std::memory_order_acquire) == seen) {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return generation.load() != seen; });
      }
      if (stopping.load()) return;
      seen = generation.load(std::memory_order_acquire);
      drain(worker);
      if (working.fetch_sub(1) == 1) {
        const std::lock_guard lock(mutex);
        done.notify_one();
      }
    }
  }
};

ThreadPool::ThreadPool(int threads, Shortage shortage)
    : threads_(threads), impl_(std::make_unique<Impl>()) {
  require(threads >= 1, "thread pool: needs at least 1 thread, got ", threads);
  impl_->workers.reserve(size_t(threads) - 1);
  try {
    for (int i = 1; i < threads; ++i)
      impl_->workers.push_back(start_thread("thread pool", join("thread ", i + 1, " of ", threads),
                                            [this, i] { impl_->work(i); }));
  } catch (const IoError&) {
    if (shortage == Shortage::kRefuse) throw;
    threads_ = int(impl_->workers.size()) + 1;
  }
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::run(int64_t count, const std::function<void(int64_t)>& task) {
  run(count, [&task](int64_t i, int) { task(i); });
}

void ThreadPool::run(int64_t count, const std::function<void(int64_t, int)>& task) {
  if (threads_ == 1 || count <= 1) {
    for (int64_t i = 0; i < count; ++i) task(i, 0);
    return;
  }
  Impl& pool = *impl_;
  {
    const std::lock_guard lock(pool.mutex);
    pool.task = &task;
    pool.count = count;
    pool.next = 0;
    pool.error = nullptr;
    pool.working = threads_ - 1;
    ++pool.generation;
  }
  pool.wake.notify_all();
  pool.drain(0);
  for (int spin = 0; spin < 2000 && pool.working.load(std::memory_order_acquire) != 0; ++spin)
    __builtin_ia32_pause();
  if (pool.working.load(std::memory_order_acquire) != 0) {
    std::unique_lock lock(pool.mutex);
    pool.done.wait(lock, [&] { return pool.working.load() == 0; });
  }
  if (pool.error) std::rethrow_exception(pool.error);
}

}  // namespace fathom
