#include <cmath>
#include <vector>

#include "core/kernels/kernels_reference.h"

namespace fathom::kernels::reference {

// The streams may differ in type, so they go through load() and store(); the sum is rounded to its
// own type before it is normalised, since that is what backward finds.
void layer_norm_forward(HostContext&, const LayerNormForward& a) {
  visit_float(a.y.dtype, [&]<class T>() {
    using A = Arithmetic<T>;
    using W = Wide<T>;
    const int64_t C = a.y.cols;
    std::vector<A> s(static_cast<size_t>(C));
    for (int64_t t = 0; t < a.y.rows; ++t) {
      A mean = 0, variance = 0;
      for (int64_t c = 0; c < C; ++c) {
        if (a.addend.is_empty()) {
          s[size_t(c)] = A(load(a.x, t, c));
        } else {
          store(a.sum, t, c, double(A(load(a.x, t, c)) + A(load(a.addend, t, c))));
          s[size_t(c)] = A(load(a.sum, t, c));
        }
        mean += s[size_t(c)] / A(C);
      }
      for (const A v : s) variance += (v - mean) * (v - mean) / A(C);
      const A rstd = 1 / std::sqrt(variance + A(a.eps));
      for (int64_t c = 0; c < C; ++c)
        a.y.row<T>(t)[c] =
            T((s[size_t(c)] - mean) * rstd * A(a.gain.as<W>()[c]) + A(a.bias.as<W>()[c]));
      a.mean.as<W>()[t] = W(mean);
      a.rstd.as<W>()[t] = W(rstd);
    }
  });
}

void layer_norm_backward(HostContext&, const LayerNormBackward& a) {
  visit_float(a.dy.dtype, [&]<class T>() {
    using A = Arithmetic<T>;
    using W = Wide<T>;
    const int64_t C = a.dy.cols;
    std::vector<A> dgain(static_cast<size_t>(C)), dbias(static_cast<size_t>(C));
    for (int64_t t = 0; t < a.dy.rows; ++t) {
      const T* dy = a.dy.row<T>(t);
      const A mean = A(a.mean.as<W>()[t]), rstd = A(a.rstd.as<W>()[t]);
      const auto g = [&](int64_t c) { return A(dy[c]) * A(a.gain.as<W>()[c]); };
      const auto xhat = [&](int64_t c) { return (A(load(a.sum, t, c)) - mean) * rstd; };

      A avg_g = 0, avg_g_xhat = 0;
      for (int64_t c = 0; c < C; ++c) {
        avg_g += g(c) / A(C);
        avg_g_xhat += g(c) * xhat(c) / A(C);
        dgain[size_t(c)] += A(dy[c]) * xhat(c);
        dbias[size_t(c)] += A(dy[c]);
      }
      for (int64_t c = 0; c < C; ++c)
        store(a.ds, t, c, double(rstd * (g(c) - avg_g - xhat(c) * avg_g_xhat)));
    }
    for (int64_t c = 0; c < C; ++c) {
      a.dgain.as<W>()[c] += W(dgain[size_t(c)]);
      a.dbias.as<W>()[c] += W(dbias[size_t(c)]);
    }
  });
}

}  // namespace fathom::kernels::reference
