// Element-wise ops.
#pragma once

#include "core/autograd/tape.h"

namespace fathom::ops {

// a x + b z, in the type of x.   (T, C) each. With a = 1 the gradient of x is dy itself.
[[nodiscard]] Var add_scaled(const Var& x, const Var& z, double a = 1, double b = 1);

// x in the tape's wide type, where sums over many blocks are kept; x itself if it has that type.
[[nodiscard]] Var widened(const Var& x);

// dropout(x/2 (1 + erf(x / sqrt 2))).   (T, C)
[[nodiscard]] Var gelu(const Var& x, const kernels::Dropout& dropout = {});

}  // namespace fathom::ops
