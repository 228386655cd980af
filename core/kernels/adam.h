// Arguments of the optimizer's kernels.
#pragma once

#include "core/kernels/matrix.h"

namespace fathom::kernels {

// One update, element by element; writes nothing when control says skip:
//   g = scale gradient;  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2
//   w = (1 - decay) w - rate m / (sqrt(v) root + epsilon)
// Both of Adam's epsilon rules have this form (core/optim/adam.h). `working`, where present, gets w
// rounded to its own type. All (1, n), wide; control as StepControl writes it.
struct Adam {
  Matrix weights, working, gradient, m, v, control;
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-8;
  double rate = 0, root = 1, decay = 0;
};

// sums[k] = sum over chunk k (statistics.h) of (decay w + rate m / (sqrt(v) root + epsilon))^2:
// with decay and rate divided by 1 - decay the squared norm of the last update, of which w is the
// outcome.
//   sums (1, N) f64
struct UpdateNorms {
  Matrix weights, m, v, chunks, sums;
  double epsilon = 1e-8, rate = 0, root = 1, decay = 0;
};

}  // namespace fathom::kernels
