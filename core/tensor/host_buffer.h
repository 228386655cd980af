// Host memory for asynchronous copies from a device (pinned memory for a GPU): the target of
// Context::download_later().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fathom::tensor {

class Device;

class HostBuffer {
 public:
  HostBuffer() = default;  // empty
  // DeviceError when memory runs out. The device must outlive it, and it must outlive the copies
  // queued into it. Contents are undefined.
  HostBuffer(Device& device, int64_t bytes);
  ~HostBuffer();
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&& other) noexcept;

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  std::span<std::byte> bytes_;
};

}  // namespace fathom::tensor
