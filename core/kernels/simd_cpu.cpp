#include "core/kernels/simd_cpu.h"

// Includes the loops once for each instruction set but the lowest.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/simd/loops-inl.h"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/kernels/simd/loops-inl.h"  // and for that

namespace fathom::kernels::cpu {

HWY_EXPORT(loops);

bool has_simd() { return (hwy::SupportedTargets() & HWY_TARGETS) != 0; }

const SimdLoops& simd() { return HWY_DYNAMIC_DISPATCH(loops)(); }

}  // namespace fathom::kernels::cpu
