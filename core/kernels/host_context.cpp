#include "core/kernels/host_context.h"

#include "core/base/thread.h"

namespace fathom::kernels {

HostContext::HostContext(HostDevice& device, int threads, bool is_queued)
    : device_(device), pool_(threads), scratch_(size_t(threads)), is_queued_(is_queued) {
  if (is_queued_) thread_ = start_thread("queue", "its thread", [this] { work(); });
}

HostContext::~HostContext() {
  if (!is_queued_) return;
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status HostContext::fail(Status status, const std::string& text) {
  device_.set_error(text);
  const std::lock_guard lock(mutex_);
  if (is_queued_ && failure_.status == kOk) failure_ = {status, text};
  return status;
}

Status HostContext::push(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.status == kOk) {
      tasks_.push_back(std::move(task));
      changed_.notify_all();
      return kOk;
    }
    device_.set_error(failure_.text);
  }
  task.cancel();
  return failure_.status;
}

Status HostContext::submit_always(std::function<void()> f) {
  if (!is_queued_) {
    f();
    return kOk;
  }
  {
    const std::lock_guard lock(mutex_);
    if (failure_.status == kOk) {
      tasks_.push_back({f, f});
      changed_.notify_all();
      return kOk;
    }
    device_.set_error(failure_.text);
  }
  f();
  return failure_.status;
}

Status HostContext::synchronise() {
  if (!is_queued_) return kOk;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return tasks_.empty() && is_idle_; });
  if (failure_.status != kOk) device_.set_error(failure_.text);
  return failure_.status;
}

HostContext::Failure HostContext::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void HostContext::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    is_idle_ = false;
    const bool has_failed = failure_.status != kOk;
    lock.unlock();
    if (has_failed)
      task.cancel();
    else
      guarded(task.run);
    task = {};
    lock.lock();
    is_idle_ = true;
    if (tasks_.empty()) changed_.notify_all();
  }
}

}  // namespace fathom::kernels
