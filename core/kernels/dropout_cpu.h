// The dropout factors of one row, in the scratch memory of the thread that asks.
#pragma once

#include "core/kernels/host_context.h"
#include "core/kernels/simd_cpu.h"
#include "core/kernels/tiles_cpu.h"

namespace fathom::kernels::cpu {

// `count` of them; null without dropout. They hold until the next call.
[[nodiscard]] inline float* row_factors(const SimdLoops& loops, Scratch& scratch,
                                        const Dropout& dropout, int64_t row, uint32_t plane,
                                        int64_t count) {
  if (!dropout.is_active()) return nullptr;
  float* factors = scratch.floats(Scratch::kFactors, round_up(count, kFactorBlock));
  loops.dropout_factors(dropout, uint32_t(dropout.rows.position[row]),
                        uint32_t(dropout.rows.sentence[row]), plane, count, factors);
  return factors;
}

}  // namespace fathom::kernels::cpu
