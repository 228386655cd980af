// Devices and small pieces of device state for tests.
#pragma once

#include <memory>
#include <vector>

#include "core/kernels/statistics.h"
#include "core/tensor/device.h"
#include "tests/support/random_tensor.h"

namespace fathom::support {

// Those that compute in f32 on this machine: the reference, and the cpu on one thread.
[[nodiscard]] inline std::vector<std::unique_ptr<Device>> host_devices() {
  std::vector<std::unique_ptr<Device>> all;
  all.push_back(tensor::make_reference_device());
  all.push_back(tensor::make_cpu_device(1));
  return all;
}

// What step_control leaves for an update that takes place, (1, kControlValues) f64.
[[nodiscard]] inline Tensor update_control(double scale = 1) {
  const Tensor control = zeros(1, kernels::kControlValues, DType::kF64);
  control.data<double>()[3] = scale;
  return control;
}

}  // namespace fathom::support
