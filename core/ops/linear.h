// Linear layer fused with what usually follows it, applied while the tile is in cache.
#pragma once

#include "core/autograd/tape.h"

namespace fathom::ops {

struct LinearEpilogue {
  bool relu = false;
  kernels::Dropout dropout = {};
};

// dropout(relu(x w^T + b)).   x (T, K)   w (N, K)   b (N), may be null   ->  (T, N)
[[nodiscard]] Var linear(const Var& x, const Parameter& w, const Parameter* b,
                         const LinearEpilogue& epilogue = {});

}  // namespace fathom::ops
