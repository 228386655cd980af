#include <cmath>
#include <numbers>

#include "core/kernels/kernels_reference.h"

namespace fathom::kernels::reference {

void add_scaled(ThreadPool&, const AddScaled& a) {
  visit_float(a.y.dtype(), [&]<class T>() {
    for (int64_t t = 0; t < a.y.rows(); ++t)
      for (int64_t c = 0; c < a.y.cols(); ++c)
        a.y.row<T>(t)[c] = T(a.a * double(a.x.row<T>(t)[c]) + a.b * double(a.z.row<T>(t)[c]));
  });
}

void gelu_forward(ThreadPool&, const GeluForward& a) {
  visit_float(a.y.dtype(), [&]<class T>() {
    for (int64_t t = 0; t < a.y.rows(); ++t) {
      for (int64_t c = 0; c < a.y.cols(); ++c) {
        const double x = double(a.x.row<T>(t)[c]);
        const double cdf = 0.5 * (1 + std::erf(x / std::numbers::sqrt2));
        a.y.row<T>(t)[c] = T(x * cdf * a.dropout.factor(t, c));
      }
    }
  });
}

// d/dx x cdf(x) = cdf(x) + x pdf(x)
void gelu_backward(ThreadPool&, const GeluBackward& a) {
  visit_float(a.dx.dtype(), [&]<class T>() {
    for (int64_t t = 0; t < a.dx.rows(); ++t) {
      for (int64_t c = 0; c < a.dx.cols(); ++c) {
        const double x = double(a.x.row<T>(t)[c]);
        const double cdf = 0.5 * (1 + std::erf(x / std::numbers::sqrt2));
        const double pdf = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
        a.dx.row<T>(t)[c] = T(double(a.dy.row<T>(t)[c]) * (cdf + x * pdf) * a.dropout.factor(t, c));
      }
    }
  });
}

}  // namespace fathom::kernels::reference
