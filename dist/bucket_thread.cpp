#include "dist/bucket_thread.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace fathom::dist {

struct BucketThread::Impl {
  std::function<void(int64_t)> reduce = {};
  std::mutex mutex = {};
  std::condition_variable changed = {};
  std::vector<bool> announced = {};
  size_t next = 0;  // the first bucket not done
  std::exception_ptr error = {};
  bool stop = false;
  std::thread thread = {};

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return stop || (next < announced.size() && announced[next]); });
      if (stop) return;
      const int64_t bucket = int64_t(next);
      lock.unlock();
      try {
        reduce(bucket);
      } catch (...) {
        lock.lock();
        error = std::current_exception();
        changed.notify_all();
        return;
      }
      lock.lock();
      ++next;
      if (next == announced.size()) changed.notify_all();
    }
  }
};

BucketThread::BucketThread(int64_t bucket_count, std::function<void(int64_t)> reduce)
    : impl_(std::make_unique<Impl>()) {
  impl_->reduce = std::move(reduce);
  impl_->announced.assign(size_t(bucket_count), false);
  impl_->thread = std::thread([this] { impl_->work(); });
}

BucketThread::~BucketThread() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  impl_->changed.notify_all();
  impl_->thread.join();
}

void BucketThread::announce(std::span<const int64_t> buckets) {
  if (buckets.empty()) return;
  {
    const std::lock_guard lock(impl_->mutex);
    for (const int64_t bucket : buckets) impl_->announced[size_t(bucket)] = true;
  }
  impl_->changed.notify_all();
}

void BucketThread::finish() {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return impl_->error || impl_->next == impl_->announced.size(); });
  if (impl_->error) std::rethrow_exception(impl_->error);
  impl_->announced.assign(impl_->announced.size(), false);
  impl_->next = 0;
}

}  // namespace fathom::dist
