// A queue of a device: kernels, copies and host functions run in the order of the calls. Only
// events order one context after another. No call but download() and synchronise() waits for the
// device, and both are counted.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <type_traits>

#include "core/kernels/cost.h"
#include "core/kernels/table.h"
#include "core/tensor/tensor.h"

namespace fathom::tensor {

class Device;

// A point in a context's queue; cheap to copy. May outlive the context, not the device.
class Event {
 public:
  Event() = default;
  [[nodiscard]] bool is_set() const { return handle_ != nullptr; }
  [[nodiscard]] bool is_done() const;  // never waits

 private:
  friend class Context;
  friend double seconds_between(const Event& from, const Event& to);
  const kernels::DeviceTable* table_ = nullptr;
  std::shared_ptr<kernels::EventHandle> handle_;
};

// Both must be done.
[[nodiscard]] double seconds_between(const Event& from, const Event& to);

class Context {
 public:
  Context(Device& device, kernels::ContextKind kind);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] Device& device() const { return device_; }
  [[nodiscard]] const kernels::DeviceTable& table() const { return table_; }
  [[nodiscard]] kernels::ContextHandle* handle() const { return handle_; }

  // run(&Kernels::fill, {.y = x, .value = 0}). DeviceError with the device's text when it fails.
  template <class Args>
  void run(kernels::Kernel<Args> kernels::Kernels::*kernel, const std::type_identity_t<Args>& a) {
    if (meter_ != nullptr) *meter_ += kernels::cost_of(a);
    check((table_.kernels.*kernel)(handle_, &a));
  }
  // From now on kernels add their cost to `meter`; null stops this.
  void set_meter(kernels::Cost* meter) { meter_ = meter; }

  [[nodiscard]] Event record();
  void wait(const Event& event);  // an event that is not set is done
  void synchronise();

  // Memory of the device, zeroed; released in the order of this context.
  [[nodiscard]] Tensor allocate(int64_t rows, int64_t cols, DType dtype);

  // Contiguous tensors. upload() has read `from` when it returns; download() waits;
  // download_later() does not: `to`, of a HostBuffer, is written when this context reaches it.
  void upload(const Tensor& to, std::span<const std::byte> from);
  void download(std::span<std::byte> to, const Tensor& from);
  void download_later(std::span<std::byte> to, const Tensor& from);
  void copy(const Tensor& to, const Tensor& from);
  template <class T>
  void upload(const Tensor& to, std::span<const T> from) {
    upload(to, std::as_bytes(from));
  }
  template <class T>
  void download(std::span<T> to, const Tensor& from) {
    download(std::as_writable_bytes(to), from);
  }

  // Runs f in this context's order, on devices whose memory the host can reach; on the context's
  // own thread where it has one. What f throws is thrown by a later call. What f owns is destroyed
  // on that thread too: tensors of contexts, not of the arena.
  void call(std::function<void()> f);

  // Throws the error of a failed status.
  void check(kernels::Status status) {
    if (status != kernels::kOk) [[unlikely]]
      throw_failure(status);
  }

 private:
  [[noreturn]] void throw_failure(kernels::Status status);

  Device& device_;
  const kernels::DeviceTable& table_;
  kernels::ContextHandle* handle_ = nullptr;
  kernels::Cost* meter_ = nullptr;
};

}  // namespace fathom::tensor

namespace fathom {
using tensor::Context;
}
