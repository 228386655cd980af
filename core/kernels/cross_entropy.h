// Arguments of the fused projection and loss.
#pragma once

#include "core/kernels/matrix.h"

namespace fathom::kernels {

// Linear layer, softmax and label-smoothed cross-entropy (fairseq 0.12), in slices of rows so that
// the (T, V) logits never exist:
//   loss_t = (1 - e - e_i) nll_t + e_i sum_v(-log p_v),  e_i = e / (V - 1)
// Writes per-row nll and loss (1, T), wide, in nats; with dx set also
//   dx = weight dlogits w (T, C) and dw += weight dlogits^T x (V, C), dw wide.
// targets (1, T) i32. `slice` (kCrossEntropyRows, V) wide is scratch: the logits of a few rows.
inline constexpr int64_t kCrossEntropyRows = 128;
struct CrossEntropy {
  Matrix x, w, slice, targets, nll, loss;
  double smoothing = 0;
  double weight = 1;
  Matrix dx, dw;
  bool batch_invariant = false;
};

}  // namespace fathom::kernels
