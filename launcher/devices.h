// The device a config asks for, and what it computes in.
#pragma once

#include <memory>

#include "core/tensor/device.h"
#include "launcher/config/config.h"

namespace fathom::launcher {

// With train.threads threads; 0: with one for each core this process may use. Where the environment
// variable FATHOM_DEVICE_LIBRARY names a device library, that one runs in place of the built-in
// device: for testing device libraries.
[[nodiscard]] std::unique_ptr<Device> make_device(const Config& config);

// Of matrices and activations: train.precision.
[[nodiscard]] DType compute_type(const Config& config);

}  // namespace fathom::launcher
