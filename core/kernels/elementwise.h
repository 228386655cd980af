// Arguments of kernels that treat every element alike.
#pragma once

#include "core/kernels/dropout.h"
#include "core/kernels/matrix.h"

namespace fathom::kernels {

// y = a x + b z, or a x where z is absent.   All (T, C), each of its own type; y may be x.
struct AddScaled {
  Matrix x, z, y;
  double a = 1, b = 1;
};

// y = value.
struct Fill {
  Matrix y;
  double value = 0;
};

// y = x/2 (1 + erf(x / sqrt 2)), then dropout.
struct GeluForward {
  Matrix x, y;
  Dropout dropout = {};
};
struct GeluBackward {
  Matrix dy, x, dx;
  Dropout dropout = {};
};

}  // namespace fathom::kernels
