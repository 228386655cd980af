// The devices built into the program.
#pragma once

#include "core/kernels/table.h"

namespace fathom::kernels {

// Plain loops on one thread: f32, f64 and bf16. What a kernel is supposed to compute.
[[nodiscard]] const DeviceTable& reference_device();

// f32 on threads, OpenBLAS for matrix products; results do not depend on the number of threads.
// create() throws nothing; its failure (no AVX2, no OpenBLAS) is in last_error(nullptr).
[[nodiscard]] const DeviceTable& cpu_device();

}  // namespace fathom::kernels
