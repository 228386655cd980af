#include <cmath>
#include <numbers>

#include "core/kernels/kernels_reference.h"

namespace fathom::kernels::reference {

void add_scaled(HostContext&, const AddScaled& a) {
  visit_float(a.y.dtype, [&]<class T>() {
    using A = Arithmetic<T>;
    for (int64_t t = 0; t < a.y.rows; ++t) {
      for (int64_t c = 0; c < a.y.cols; ++c) {
        const A ax = A(a.a) * A(load(a.x, t, c));
        a.y.row<T>(t)[c] = T(a.z.is_empty() ? ax : ax + A(a.b) * A(load(a.z, t, c)));
      }
    }
  });
}

void fill(HostContext&, const Fill& a) {
  for (int64_t t = 0; t < a.y.rows; ++t)
    for (int64_t c = 0; c < a.y.cols; ++c) {
      if (a.y.dtype == DType::kI32)
        a.y.row<int32_t>(t)[c] = int32_t(a.value);
      else
        store(a.y, t, c, a.value);
    }
}

void gelu_forward(HostContext&, const GeluForward& a) {
  visit_float(a.y.dtype, [&]<class T>() {
    using A = Arithmetic<T>;
    for (int64_t t = 0; t < a.y.rows; ++t) {
      for (int64_t c = 0; c < a.y.cols; ++c) {
        const A x = A(a.x.row<T>(t)[c]);
        const A cdf = A(0.5) * (1 + std::erf(x / std::numbers::sqrt2_v<A>));
        a.y.row<T>(t)[c] = T(x * cdf * A(a.dropout.factor(t, c)));
      }
    }
  });
}

// d/dx x cdf(x) = cdf(x) + x pdf(x)
void gelu_backward(HostContext&, const GeluBackward& a) {
  visit_float(a.dx.dtype, [&]<class T>() {
    using A = Arithmetic<T>;
    for (int64_t t = 0; t < a.dx.rows; ++t) {
      for (int64_t c = 0; c < a.dx.cols; ++c) {
        const A x = A(a.x.row<T>(t)[c]);
        const A cdf = A(0.5) * (1 + std::erf(x / std::numbers::sqrt2_v<A>));
        const A pdf = std::exp(A(-0.5) * x * x) / std::sqrt(2 * std::numbers::pi_v<A>);
        a.dx.row<T>(t)[c] = T(A(a.dy.row<T>(t)[c]) * (cdf + x * pdf) * A(a.dropout.factor(t, c)));
      }
    }
  });
}

}  // namespace fathom::kernels::reference
