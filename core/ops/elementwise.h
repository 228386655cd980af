// Ops that only move memory.
#pragma once

#include "core/autograd/tape.h"

namespace fathom::ops {

// a x + b z.   (T, C) each. With a = 1 the gradient of x is dy itself, not a copy.
[[nodiscard]] Var add_scaled(const Var& x, const Var& z, double a = 1, double b = 1);

// dropout(x/2 (1 + erf(x / sqrt 2))).   (T, C)
[[nodiscard]] Var gelu(const Var& x, kernels::Dropout dropout = {});

}  // namespace fathom::ops
