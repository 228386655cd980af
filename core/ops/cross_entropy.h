// Projection to the vocabulary, softmax and label-smoothed cross-entropy as one op: the logits of
// a whole batch never exist, and the derivative is computed in the same pass.
#pragma once

#include "core/autograd/tape.h"

namespace fathom::ops {

struct TokenLosses {
  Var loss;       // for Tape::backward; its seed must be 1, `weight` is already in the gradient
  Tensor nll;     // (1, T) wide, nats per target token, unsmoothed
  Tensor smooth;  // (1, T) wide, nats per target token, the objective
};

// x (T, C), w (V, C), targets (1, T) i32, each below V. `weight` is 1 / (target tokens of the
// global batch).
[[nodiscard]] TokenLosses linear_cross_entropy(const Var& x, const Parameter& w,
                                               const Tensor& targets, double smoothing,
                                               double weight);

}  // namespace fathom::ops
