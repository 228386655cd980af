// Where kernels run: `reference` (plain loops in f32, f64 and bf16, the specification), `cpu` (f32,
// threads, OpenBLAS), or a library opened at run time. A device has its kernels, its contexts, its
// memory and its arena; nothing is global.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/arena.h"
#include "core/tensor/context.h"

namespace fathom::tensor {

struct DeviceLimits {
  int64_t arena_bytes = 0;  // 0: as much as the device has memory, and may be reserved on a host
};

class Device {
 public:
  // `library` stays open as long as the device exists. DeviceError when it cannot be made.
  Device(const kernels::DeviceTable& table, const kernels::DeviceOptions& options,
         const DeviceLimits& limits = {}, std::shared_ptr<void> library = {});
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] std::string name() const { return info_.name; }
  // Identifies what the bits of a result depend on: equal on two devices that give equal results.
  [[nodiscard]] std::string numerics() const { return info_.numerics; }
  [[nodiscard]] kernels::DeviceInfo info() const;  // with its present memory use
  // Peak FLOP/s of matrix products. May take 20 ms; measured lower on a busy machine.
  [[nodiscard]] double peak_flops(DType dtype);
  // Throws InvalidArgument when the device does not compute in `dtype`.
  void check_supports(DType dtype) const;

  // The other two are created on first use.
  [[nodiscard]] Context& compute() { return *compute_; }
  [[nodiscard]] Context& communication();
  [[nodiscard]] Context& copies();
  [[nodiscard]] Arena& arena() { return *arena_; }  // of the compute context

  // How often the host has waited for the device: downloads and synchronisations.
  [[nodiscard]] int64_t host_waits() const { return host_waits_; }

  // See HostBuffer.
  [[nodiscard]] std::span<std::byte> allocate_staging(int64_t bytes);
  void release_staging(std::span<std::byte> memory);

  // Bytes held by tensors of contexts, not counting the arena.
  [[nodiscard]] int64_t allocated_bytes() const { return *allocated_bytes_; }

  [[nodiscard]] const kernels::DeviceTable& table() const { return table_; }
  [[nodiscard]] kernels::DeviceHandle* handle() const { return handle_; }

 private:
  friend class Context;
  // Staging memory for uploads: a block is reused once the event after its last use is done.
  struct Staging {
    std::byte* memory = nullptr;
    uint64_t bytes = 0;
    Event used;
  };
  [[nodiscard]] Staging& staging(uint64_t bytes);

  std::shared_ptr<void> library_;
  const kernels::DeviceTable& table_;
  kernels::DeviceHandle* handle_ = nullptr;
  kernels::DeviceInfo info_;  // as it was at the start
  std::vector<Staging> staging_;
  std::unique_ptr<Context> compute_, communication_, copies_;
  std::unique_ptr<Arena> arena_;
  int64_t host_waits_ = 0;
  // Tensors are released on the threads of their contexts.
  std::shared_ptr<std::atomic<int64_t>> allocated_bytes_ =
      std::make_shared<std::atomic<int64_t>>(0);
  std::mutex mutex_;
  std::exception_ptr failure_;  // of the last host function that threw
};

// One thread: f32, f64 and bf16.
[[nodiscard]] std::unique_ptr<Device> make_reference_device();

// f32 only; results do not depend on `threads`.
[[nodiscard]] std::unique_ptr<Device> make_cpu_device(int threads);

// For memory plans: reserves address space only, and its kernels do nothing.
[[nodiscard]] std::unique_ptr<Device> make_planning_device();

// "auto" is cpu; throws InvalidArgument on an unknown name, or on cuda, which is not built.
[[nodiscard]] std::unique_ptr<Device> make_device(const std::string& name, int threads);

// A device library. DeviceError naming the path when it cannot be opened, is not a device library,
// or has another version of the table.
[[nodiscard]] std::unique_ptr<Device> open_device_library(const std::string& path,
                                                          const kernels::DeviceOptions& options);

}  // namespace fathom::tensor

namespace fathom {
using tensor::Device;
}
