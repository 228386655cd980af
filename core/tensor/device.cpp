#include "core/tensor/device.h"

#include "core/kernels/blas_cpu.h"

namespace fathom::core {

std::unique_ptr<Device> make_reference_device() {
  return std::make_unique<Device>("reference", reference::kernels(), 1);
}

std::unique_ptr<Device> make_cpu_device(int threads) {
  cpu::load_blas();
  return std::make_unique<Device>("cpu", cpu::kernels(), threads);
}

std::unique_ptr<Device> make_device(const std::string& name, int threads) {
  if (name == "reference") return make_reference_device();
  if (name == "cpu" || name == "auto") return make_cpu_device(threads);
  fail("train.device: got ", name, ", this build has auto, cpu and reference");
}

std::string cpu_numerics_fingerprint() { return "tiles-1 " + cpu::blas_description(); }

}  // namespace fathom::core
