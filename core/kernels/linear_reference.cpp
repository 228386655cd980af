#include <vector>

#include "core/kernels/kernels_reference.h"

namespace fathom::kernels::reference {

void linear_forward(HostContext&, const LinearForward& a) {
  visit_float(a.y.dtype, [&]<class T>() {
    using A = Arithmetic<T>;
    for (int64_t t = 0; t < a.y.rows; ++t) {
      for (int64_t n = 0; n < a.y.cols; ++n) {
        A sum = a.b.is_empty() ? A(0) : A(a.b.as<Wide<T>>()[n]);
        for (int64_t k = 0; k < a.x.cols; ++k) sum += A(a.x.row<T>(t)[k]) * A(a.w.row<T>(n)[k]);
        if (a.relu && sum < 0) sum = 0;
        a.y.row<T>(t)[n] = T(sum * A(a.dropout.factor(t, n)));
      }
    }
  });
}

void linear_backward(HostContext&, const LinearBackward& a) {
  visit_float(a.dy.dtype, [&]<class T>() {
    using A = Arithmetic<T>;
    using W = Wide<T>;
    const int64_t rows = a.dy.rows, N = a.dy.cols, K = a.x.cols;
    const auto dz = [&](int64_t t, int64_t n) {
      if (a.relu && !(A(a.y.row<T>(t)[n]) > 0)) return A(0);
      return A(a.dy.row<T>(t)[n]) * A(a.dropout.factor(t, n));
    };
    std::vector<A> dz_all(size_t(rows * N));
    for (int64_t t = 0; t < rows; ++t)
      for (int64_t n = 0; n < N; ++n) dz_all[size_t(t * N + n)] = dz(t, n);

    if (!a.dx.is_empty()) {
      for (int64_t t = 0; t < rows; ++t) {
        for (int64_t k = 0; k < K; ++k) {
          A sum = 0;
          for (int64_t n = 0; n < N; ++n) sum += dz_all[size_t(t * N + n)] * A(a.w.row<T>(n)[k]);
          a.dx.row<T>(t)[k] = T(sum);
        }
      }
    }
    for (int64_t n = 0; n < N; ++n) {
      for (int64_t k = 0; k < K; ++k) {
        A sum = 0;
        for (int64_t t = 0; t < rows; ++t) sum += dz_all[size_t(t * N + n)] * A(a.x.row<T>(t)[k]);
        a.dw.row<W>(n)[k] += W(sum);
      }
      if (a.db.is_empty()) continue;
      A sum = 0;
      for (int64_t t = 0; t < rows; ++t) sum += dz_all[size_t(t * N + n)];
      a.db.as<W>()[n] += W(sum);
    }
  });
}

}  // namespace fathom::kernels::reference
