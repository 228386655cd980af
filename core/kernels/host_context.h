// Contexts of the devices whose kernels run on this machine's cores. The compute context runs what
// it is given at once, on a pool of threads; the others are queues with a thread of their own, its
// own scratch, and no pool.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/kernels/table.h"

namespace fathom::kernels {

class HostDevice;

// A failure that has a status of its own.
struct HostError : std::runtime_error {
  HostError(Status s, const std::string& text) : std::runtime_error(text), status(s) {}
  Status status;
};

// Buffers of one thread, grown to the largest use.
class Scratch {
 public:
  enum Slot { kKeys, kValues, kScores, kDerivative, kFactors, kSlots };
  float* floats(Slot slot, int64_t count) {
    std::vector<float>& v = slots_[slot];
    if (int64_t(v.size()) < count) v.resize(size_t(count));
    return v.data();
  }

 private:
  std::array<std::vector<float>, kSlots> slots_;
};

class HostContext {
 public:
  HostContext(HostDevice& device, int threads, bool is_queued);
  ~HostContext();
  HostContext(const HostContext&) = delete;
  HostContext& operator=(const HostContext&) = delete;

  [[nodiscard]] HostDevice& device() { return device_; }
  [[nodiscard]] ThreadPool& pool() { return pool_; }
  // Of worker `worker` of the pool.
  [[nodiscard]] Scratch& scratch(int worker) { return scratch_[size_t(worker)]; }

  // Runs `f`, which may throw, now or after all that was submitted before. A queue that has failed
  // runs nothing more: `cancel` is called in place of `f`.
  template <class F>
  Status submit(F f) {
    return submit(std::move(f), [] {});
  }
  template <class F, class Cancel>
  Status submit(F f, Cancel cancel) {
    if (is_queued_) return push({std::move(f), std::move(cancel)});
    return guarded(f);
  }
  // Also where the queue has failed: for what others wait for.
  Status submit_always(std::function<void()> f);
  Status synchronise();
  struct Failure {
    Status status = kOk;
    std::string text;
  };
  [[nodiscard]] Failure failure();  // of a queue that has failed

 private:
  struct Task {
    std::function<void()> run, cancel;
  };
  // Turns an exception into a status and the device's last error.
  template <class F>
  Status guarded(F& f);
  Status fail(Status status, const std::string& text);
  Status push(Task task);
  void work();

  HostDevice& device_;
  ThreadPool pool_;
  std::vector<Scratch> scratch_;
  bool is_queued_;

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool is_idle_ = true, is_ending_ = false;
  Failure failure_;
  std::thread thread_;
};

[[nodiscard]] inline HostContext& host(ContextHandle* context) {
  return *reinterpret_cast<HostContext*>(context);
}

// What makes one host device differ from another.
struct HostTraits {
  const char* name;
  std::string numerics;
  uint32_t compute_types;
  double (*peak_flops)(int threads);
};

class HostDevice {
 public:
  HostDevice(HostTraits traits, int threads);
  ~HostDevice();

  [[nodiscard]] const HostTraits& traits() const { return traits_; }
  [[nodiscard]] int threads() const { return threads_; }
  void set_error(const std::string& text);
  [[nodiscard]] const char* error();

  [[nodiscard]] void* allocate(uint64_t bytes);  // null when there is no more
  void release(void* memory);

 private:
  HostTraits traits_;
  int threads_;
  std::mutex mutex_;
  std::string error_;
  std::vector<std::unique_ptr<std::string>> errors_;
  std::vector<std::pair<void*, uint64_t>> mapped_;
};

template <class F>
Status HostContext::guarded(F& f) {
  try {
    f();
    return kOk;
  } catch (const HostError& error) {
    return fail(error.status, error.what());
  } catch (const std::bad_alloc&) {
    return fail(kOutOfMemory, "out of memory");
  } catch (const std::exception& error) {
    return fail(kFailed, error.what());
  }
}

// The table's entry for a kernel written as `void f(HostContext&, const Args&)`.
template <auto f, class Args>
Status run_kernel(ContextHandle* context, const Args* a) {
  HostContext& c = host(context);
  return c.submit([&c, args = *a] { f(c, args); });
}

// All but name, kernels and `create`.
[[nodiscard]] DeviceTable host_device_table();

// For a device's `create`: makes a HostDevice of these traits.
Status create_host_device(HostTraits (*traits)(), const DeviceOptions* options, DeviceHandle** out);

}  // namespace fathom::kernels
