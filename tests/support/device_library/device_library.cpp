#include "core/kernels/devices.h"

extern "C" __attribute__((visibility("default"))) const fathom::kernels::DeviceTable*
fathom_device_table(uint32_t version) {
  return version == fathom::kernels::kDeviceTableVersion ? &fathom::kernels::reference_device()
                                                         : nullptr;
}
