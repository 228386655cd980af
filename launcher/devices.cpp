#include "launcher/devices.h"

#include <cstdlib>

#include "core/base/limits.h"
#include "launcher/cores.h"

namespace fathom::launcher {

std::unique_ptr<Device> make_device(const Config& config) {
  const int threads = threads_per_rank(config, available_cores());
  if (const char* library = std::getenv("FATHOM_DEVICE_LIBRARY"))
    return tensor::open_device_library(library, {.threads = threads});
  return tensor::make_device(config.train.device == DeviceChoice::kReference ? "reference" : "cpu",
                             threads);
}

DType compute_type(const Config& config) {
  switch (config.train.precision) {
    case Precision::kFp64:
      return DType::kF64;
    case Precision::kBf16:
      return DType::kBF16;
    case Precision::kFp32:
      break;
  }
  return DType::kF32;
}

}  // namespace fathom::launcher
