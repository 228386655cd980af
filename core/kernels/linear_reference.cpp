#include <vector>

#include "core/kernels/kernels_reference.h"

namespace fathom::kernels::reference {

void linear_forward(ThreadPool&, const LinearForward& a) {
  visit_float(a.y.dtype(), [&]<class T>() {
    for (int64_t t = 0; t < a.y.rows(); ++t) {
      for (int64_t n = 0; n < a.y.cols(); ++n) {
        double sum = a.b.is_empty() ? 0 : double(a.b.data<T>()[n]);
        for (int64_t k = 0; k < a.x.cols(); ++k)
          sum += double(a.x.row<T>(t)[k]) * double(a.w.row<T>(n)[k]);
        if (a.relu && sum < 0) sum = 0;
        a.y.row<T>(t)[n] = T(sum * a.dropout.factor(t, n));
      }
    }
  });
}

void linear_backward(ThreadPool&, const LinearBackward& a) {
  visit_float(a.dy.dtype(), [&]<class T>() {
    const int64_t rows = a.dy.rows(), N = a.dy.cols(), K = a.x.cols();
    const auto dz = [&](int64_t t, int64_t n) {
      if (a.relu && !(a.y.row<T>(t)[n] > T(0))) return 0.0;
      return double(a.dy.row<T>(t)[n]) * a.dropout.factor(t, n);
    };
    std::vector<double> dz_all(size_t(rows * N));
    for (int64_t t = 0; t < rows; ++t)
      for (int64_t n = 0; n < N; ++n) dz_all[size_t(t * N + n)] = dz(t, n);

    if (!a.dx.is_empty()) {
      for (int64_t t = 0; t < rows; ++t) {
        for (int64_t k = 0; k < K; ++k) {
          double sum = 0;
          for (int64_t n = 0; n < N; ++n)
            sum += dz_all[size_t(t * N + n)] * double(a.w.row<T>(n)[k]);
          a.dx.row<T>(t)[k] = T(sum);
        }
      }
    }
    for (int64_t n = 0; n < N; ++n) {
      for (int64_t k = 0; k < K; ++k) {
        double sum = 0;
        for (int64_t t = 0; t < rows; ++t)
          sum += dz_all[size_t(t * N + n)] * double(a.x.row<T>(t)[k]);
        a.dw.row<T>(n)[k] += T(sum);
      }
      if (a.db.is_empty()) continue;
      double sum = 0;
      for (int64_t t = 0; t < rows; ++t) sum += dz_all[size_t(t * N + n)];
      a.db.data<T>()[n] += T(sum);
    }
  });
}

}  // namespace fathom::kernels::reference
