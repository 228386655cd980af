// The reference device as a library of its own, with what a GPU has and the reference has not: the
// host cannot reach its memory, so that the ranks exchange through its collectives.
#include "core/kernels/devices.h"
#include "shared_memory_group.h"

namespace fathom::kernels {
namespace {

Status info_without_host(DeviceHandle* device, DeviceInfo* out) {
  const Status status = reference_device().info(device, out);
  out->is_host_accessible = 0;
  return status;
}

const DeviceTable& table() {
  static const DeviceTable own = [] {
    DeviceTable t = reference_device();
    t.info = info_without_host;
    t.call = nullptr;
    t.collectives = shared_memory_collectives();
    return t;
  }();
  return own;
}

}  // namespace
}  // namespace fathom::kernels

extern "C" __attribute__((visibility("default"))) const fathom::kernels::DeviceTable*
fathom_device_table(uint32_t version) {
  return version == fathom::kernels::kDeviceTableVersion ? &fathom::kernels::table() : nullptr;
}
