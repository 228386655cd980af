// Layer normalisation over the features of a row, of a tensor or of a sum.
#pragma once

#include "core/autograd/tape.h"

namespace fathom::ops {

// (x - mean) / sqrt(var + eps) * gain + bias, in the tape's type.   x (T, C)   gain, bias (C)
[[nodiscard]] Var layer_norm(const Var& x, const Parameter& gain, const Parameter& bias,
                             double eps);

// layer_norm(x + o) in one pass; both inputs receive the same gradient tensor.
[[nodiscard]] Var add_layer_norm(const Var& x, const Var& o, const Parameter& gain,
                                 const Parameter& bias, double eps);

}  // namespace fathom::ops
