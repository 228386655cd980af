// Arguments of the linear layer's kernels.
#pragma once

#include "core/kernels/dropout.h"
#include "core/kernels/matrix.h"

namespace fathom::kernels {

// y = dropout(relu(x w^T + b)).   x (T, K)   w (N, K)   b (1, N) wide   y (T, N)
// With `batch_invariant` the bits of a row depend on that row alone, not on what shares the batch.
struct LinearForward {
  Matrix x, w, b, y;
  bool relu = false;
  bool batch_invariant = false;
  Dropout dropout = {};
};

// dz = dy * dropout mask * [y > 0 if relu];  dx = dz w;  dw += dz^T x;  db += column sums of dz.
// `scratch` (T, N) holds dz where a mask applies. dw, db are wide.
struct LinearBackward {
  Matrix dy, x, w, y, dx, dw, db, scratch;
  bool relu = false;
  Dropout dropout = {};
};

}  // namespace fathom::kernels
