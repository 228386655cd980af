// Sums and products with learned weights.
#pragma once

#include <span>

#include "core/autograd/tape.h"

namespace fathom::ops {

// sum_j w[first + j] x_j, in the type of x_0.   x_j (T, C)   w: a vector
// Added in the order of the inputs, forward and backward, so the bits depend on nothing else.
[[nodiscard]] Var weighted_sum(std::span<const Var> x, const Parameter& w, int64_t first);

// x_1 + x_2 + ..., in this order, in the type of x_1.   x_j (T, C)
[[nodiscard]] Var sum(std::span<const Var> x);

// x[t][c] g[c], in the type of x.   x (T, C)   g (C)
[[nodiscard]] Var scale_columns(const Var& x, const Parameter& g);

}  // namespace fathom::ops
