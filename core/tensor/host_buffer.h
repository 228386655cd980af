// Host memory that a device copies to while the host goes on (pinned memory of a GPU): where
// Context::download_later() may write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fathom::tensor {

class Device;

class HostBuffer {
 public:
  HostBuffer() = default;  // empty
  // DeviceError when there is no memory. The device outlives it, and so does what was queued to
  // write into it. Contents are undefined.
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
