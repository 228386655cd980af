#include "core/tensor/host_buffer.h"

#include <utility>

#include "core/tensor/device.h"

namespace fathom::tensor {

HostBuffer::HostBuffer(Device& device, int64_t bytes)
    : device_(&device), bytes_(device.allocate_staging(bytes)) {}

HostBuffer::~HostBuffer() {
  if (!bytes_.empty()) device_->release_staging(bytes_);
}

HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : device_(other.device_), bytes_(std::exchange(other.bytes_, {})) {}

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace fathom::tensor
