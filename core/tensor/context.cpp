#include "core/tensor/context.h"

#include <algorithm>
#include <cstring>

#include "core/tensor/device.h"

namespace fathom::tensor {

bool Event::is_done() const {
  if (!handle_) return true;
  int32_t done = 0;
  return table_->is_done(handle_.get(), &done) == kernels::kOk && done != 0;
}

double seconds_between(const Event& from, const Event& to) {
  double seconds = 0;
  require<DeviceError>(
      from.is_set() && to.is_set() &&
          from.table_->elapsed(from.handle_.get(), to.handle_.get(), &seconds) == kernels::kOk,
      "device: the time between two events was requested before both are done");
  return seconds;
}

Context::Context(Device& device, kernels::ContextKind kind)
    : device_(device), table_(device.table()) {
  check(table_.create_context(device.handle_, kind, &handle_));
}

Context::~Context() { table_.destroy_context(handle_); }

void Context::throw_failure(kernels::Status status) {
  if (status == kernels::kHostFailed) {
    const std::lock_guard lock(device_.mutex_);
    if (device_.failure_) std::rethrow_exception(device_.failure_);
  }
  const char* text = table_.last_error(device_.handle_);
  if (status == kernels::kBadArgument) fail(device_.name(), ": ", text);
  if (status == kernels::kRefused) fail<IoError>(device_.name(), ": ", text);
  fail<DeviceError>(device_.name(), ": ", text);
}

Event Context::record() {
  Event event;
  event.table_ = &table_;
  kernels::EventHandle* handle = nullptr;
  const kernels::Status status = table_.record(handle_, &handle);
  if (handle != nullptr) event.handle_ = {handle, table_.destroy_event};
  check(status);
  return event;
}

void Context::wait(const Event& event) {
  if (event.is_set()) check(table_.wait(handle_, event.handle_.get()));
}

void Context::synchronise() {
  ++device_.host_waits_;
  check(table_.synchronise(handle_));
}

Tensor Context::allocate(int64_t rows, int64_t cols, DType dtype) {
  const int64_t bytes = std::max<int64_t>(rows * cols * size_of(dtype), 1);
  void* memory = nullptr;
  check(table_.allocate(handle_, uint64_t(bytes), &memory));
  *device_.allocated_bytes_ += bytes;
  Tensor out(memory, rows, cols, dtype,
             std::shared_ptr<void>(memory, [&table = table_, handle = handle_, bytes,
                                            held = device_.allocated_bytes_](void* p) {
               *held -= bytes;
               table.release(handle, p);
             }));
  run(&kernels::Kernels::fill, {.y = out, .value = 0});
  return out;
}

void Context::upload(const Tensor& to, std::span<const std::byte> from) {
  require(to.is_contiguous() && int64_t(from.size()) == to.bytes(), "upload: ", from.size(),
          " bytes for ", to);
  if (from.empty()) return;
  Device::Staging& staging = device_.staging(from.size());
  std::memcpy(staging.memory, from.data(), from.size());
  check(table_.upload(handle_, to.address(), staging.memory, from.size()));
  staging.used = record();
}

void Context::download_later(std::span<std::byte> to, const Tensor& from) {
  require(from.is_contiguous() && int64_t(to.size()) == from.bytes(), "download: ", from, " into ",
          to.size(), " bytes");
  if (!to.empty()) check(table_.download(handle_, to.data(), from.address(), to.size()));
}

void Context::download(std::span<std::byte> to, const Tensor& from) {
  download_later(to, from);
  synchronise();
}

void Context::copy(const Tensor& to, const Tensor& from) {
  require(to.is_contiguous() && from.is_contiguous() && to.numel() == from.numel() &&
              to.dtype() == from.dtype(),
          "copy: ", from, " to ", to);
  if (from.numel() > 0)
    check(table_.copy(handle_, to.address(), from.address(), uint64_t(from.bytes())));
}

void Context::call(std::function<void()> f) {
  require<DeviceError>(table_.call != nullptr, device_.name(),
                       ": host functions cannot reach the memory of this device");
  struct Closure {
    Device& device;
    std::function<void()> f;
  };
  const auto run = [](void* argument, int32_t is_wanted) -> kernels::Status {
    const std::unique_ptr<Closure> closure(static_cast<Closure*>(argument));
    if (is_wanted == 0) return kernels::kOk;
    try {
      closure->f();
      return kernels::kOk;
    } catch (...) {
      const std::lock_guard lock(closure->device.mutex_);
      closure->device.failure_ = std::current_exception();
      return kernels::kHostFailed;
    }
  };
  check(table_.call(handle_, run, new Closure{device_, std::move(f)}));
}

}  // namespace fathom::tensor
