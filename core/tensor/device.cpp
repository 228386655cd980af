#include "core/tensor/device.h"

#include <algorithm>
#include <utility>

#include <dlfcn.h>

#include "core/base/limits.h"
#include "core/kernels/devices.h"

namespace fathom::tensor {
namespace {

MemoryBound arena_bound(const kernels::DeviceInfo& info, const DeviceLimits& limits) {
  if (limits.arena_bytes > 0) return {.bytes = limits.arena_bytes};
  const MemoryBound all = {.bytes = int64_t(info.memory_total)};
  if (info.is_host_accessible == 0) return all;
  MemoryBound host = reservable_memory();
  require<DeviceError>(host.bytes > 0, info.name, ": no memory is left to reserve; ", host.remedy);
  return host.bytes <= all.bytes ? std::move(host) : all;
}

}  // namespace

Device::Device(const kernels::DeviceTable& table, const kernels::DeviceOptions& options,
               const DeviceLimits& limits, std::shared_ptr<void> library)
    : library_(std::move(library)), table_(table) {
  if (table_.create(&options, &handle_) != kernels::kOk)
    fail<DeviceError>("device: cannot be made: ", table_.last_error(nullptr));
  try {
    info_ = info();
    compute_ = std::make_unique<Context>(*this, kernels::ContextKind::kCompute);
    const MemoryBound bound = arena_bound(info_, limits);
    arena_ = std::make_unique<Arena>(*compute_, bound.bytes, bound.remedy);
  } catch (...) {
    compute_.reset();
    table_.destroy(handle_);
    throw;
  }
}

// Host functions own tensors of any context: all finish before the first context is destroyed.
Device::~Device() {
  for (const auto* context : {&copies_, &communication_})
    if (*context) (void)table_.synchronise((*context)->handle());
  copies_.reset();
  communication_.reset();
  arena_.reset();
  compute_.reset();
  for (const Staging& s : staging_) table_.release_staging(handle_, s.memory);
  staging_.clear();  // their events are released before the device
  table_.destroy(handle_);
}

kernels::DeviceInfo Device::info() const {
  kernels::DeviceInfo out;
  require<DeviceError>(table_.info(handle_, &out) == kernels::kOk,
                       "device: returns no information about itself");
  return out;
}

double Device::peak_flops(DType dtype) {
  double out = 0;
  compute_->check(table_.peak_flops(handle_, dtype, &out));
  return out;
}

void Device::check_supports(DType dtype) const {
  const bool is_supported = (info_.compute_types >> uint32_t(dtype) & 1u) != 0;
  require(is_supported, "device ", name(), ": does not compute in ", to_string(dtype),
          "; train.precision fp64 and bf16 need train.device reference");
}

Context& Device::communication() {
  if (!communication_)
    communication_ = std::make_unique<Context>(*this, kernels::ContextKind::kCommunication);
  return *communication_;
}

Context& Device::copies() {
  if (!copies_) copies_ = std::make_unique<Context>(*this, kernels::ContextKind::kCopy);
  return *copies_;
}

Device::Staging& Device::staging(uint64_t bytes) {
  for (Staging& s : staging_)
    if (s.bytes >= bytes && s.used.is_done()) return s;
  constexpr uint64_t kLeast = 64 << 10;
  const uint64_t room = std::max(kLeast, bytes + bytes / 2);
  return staging_.emplace_back(Staging{allocate_staging(int64_t(room)).data(), room, {}});
}

std::span<std::byte> Device::allocate_staging(int64_t bytes) {
  void* memory = nullptr;
  compute_->check(table_.allocate_staging(handle_, uint64_t(bytes), &memory));
  return {static_cast<std::byte*>(memory), size_t(bytes)};
}

void Device::release_staging(std::span<std::byte> memory) {
  table_.release_staging(handle_, memory.data());
}

std::unique_ptr<Device> make_reference_device() {
  return std::make_unique<Device>(kernels::reference_device(), kernels::DeviceOptions{});
}

std::unique_ptr<Device> make_cpu_device(int threads) {
  return std::make_unique<Device>(kernels::cpu_device(),
                                  kernels::DeviceOptions{.threads = threads});
}

std::unique_ptr<Device> make_planning_device() {
  static const kernels::DeviceTable table = [] {
    kernels::DeviceTable out = kernels::reference_device();
    kernels::for_each_kernel(
        [&]<class Args>(const char*, kernels::Kernel<Args> kernels::Kernels::*kernel) {
          out.kernels.*kernel = [](kernels::ContextHandle*, const Args*) { return kernels::kOk; };
        });
    return out;
  }();
  return std::make_unique<Device>(table, kernels::DeviceOptions{});
}

std::unique_ptr<Device> make_device(const std::string& name, int threads) {
  if (name == "reference") return make_reference_device();
  if (name == "cpu" || name == "auto") return make_cpu_device(threads);
  fail("train.device: got ", name, ", this build has auto, cpu and reference");
}

std::unique_ptr<Device> open_device_library(const std::string& path,
                                            const kernels::DeviceOptions& options) {
  std::shared_ptr<void> library(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL), [](void* handle) {
    if (handle != nullptr) dlclose(handle);
  });
  if (!library) {
    const char* reason = dlerror();
    fail<DeviceError>("device library ", path,
                      ": cannot be opened: ", reason == nullptr ? "?" : reason,
                      "; give the path of a device library that was built for this machine");
  }
  const auto entry =
      reinterpret_cast<kernels::DeviceEntryPoint>(dlsym(library.get(), kernels::kDeviceEntryPoint));
  require<DeviceError>(entry != nullptr, "device library ", path, ": exports no ",
                       kernels::kDeviceEntryPoint, "; give the path of a device library");
  const kernels::DeviceTable* table = entry(kernels::kDeviceTableVersion);
  require<DeviceError>(table != nullptr && table->version == kernels::kDeviceTableVersion &&
                           table->bytes == sizeof(kernels::DeviceTable),
                       "device library ", path, ": has no table of version ",
                       kernels::kDeviceTableVersion, "; build it together with this program");
  return std::make_unique<Device>(*table, options, DeviceLimits{}, std::move(library));
}

}  // namespace fathom::tensor
