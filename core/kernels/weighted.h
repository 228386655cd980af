// Arguments of kernels with learned weights.
#pragma once

#include "core/kernels/matrix.h"

namespace fathom::kernels {

// y = w x, or y += w x with `accumulate`; w = weights[index].
//   x, y (T, C), each of its own type; y may be x   weights (1, n) wide
struct AddWeighted {
  Matrix x, weights, y;
  int64_t index = 0;
  bool accumulate = false;
};

// dweights[index] += sum over all elements of dy x.   dy, x (T, C)   dweights (1, n) wide
struct WeightGradient {
  Matrix dy, x, dweights;
  int64_t index = 0;
};

// y[t][c] = x[t][c] gain[c].   x, y (T, C)   gain (1, C) wide
struct ScaleColumns {
  Matrix x, gain, y;
};
// dx[t][c] = dy[t][c] gain[c],  dgain[c] += sum_t dy[t][c] x[t][c].   dgain (1, C) wide
struct ScaleColumnsBackward {
  Matrix dy, x, gain, dx, dgain;
};

}  // namespace fathom::kernels
