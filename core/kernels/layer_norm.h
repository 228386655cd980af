// Arguments of the layer norm's kernels.
#pragma once

#include "core/kernels/matrix.h"

namespace fathom::kernels {

// s = x + addend (or x), y = (s - mean) / sqrt(var + eps) * gain + bias over the C entries of a
// row.
//   x, addend, sum, y (T, C)   gain, bias (1, C) wide   mean, rstd (1, T) wide
// `sum` is written only with an addend and kept for the derivative. x, addend, sum and y may differ
// in type: a residual stream may be wider than what the blocks compute in.
struct LayerNormForward {
  Matrix x, addend, gain, bias, sum, y, mean, rstd;
  double eps = 1e-5;
};

// With xhat = (s - mean) rstd, g = dy gain:  ds = rstd (g - avg(g) - xhat avg(g xhat)),
// dgain += sum of dy xhat over rows,  dbias += sum of dy.
struct LayerNormBackward {
  Matrix dy, sum, gain, mean, rstd, ds, dgain, dbias;
};

}  // namespace fathom::kernels
