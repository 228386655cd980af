#include "core/tensor/device.h"

#include "core/kernels/blas_cpu.h"

namespace fathom::tensor {

std::unique_ptr<Device> make_reference_device() {
  return std::make_unique<Device>("reference", kernels::reference::kernels(), 1);
}

std::unique_ptr<Device> make_cpu_device(int threads) {
  kernels::cpu::load_blas();
  return std::make_unique<Device>("cpu", kernels::cpu::kernels(), threads);
}

std::unique_ptr<Device> make_device(const std::string& name, int threads) {
  if (name == "reference") return make_reference_device();
  if (name == "cpu" || name == "auto") return make_cpu_device(threads);
  fail("train.device: got ", name, ", this build has auto, cpu and reference");
}

std::string cpu_numerics_fingerprint() { return "tiles-1 " + kernels::cpu::blas_description(); }

}  // namespace fathom::tensor
