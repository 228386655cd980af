#include <cmath>
#include <vector>

#include "core/kernels/kernels_reference.h"

namespace fathom::kernels::reference {

void layer_norm_forward(ThreadPool&, const LayerNormForward& a) {
  visit_float(a.y.dtype(), [&]<class T>() {
    const int64_t C = a.y.cols();
    std::vector<double> s(static_cast<size_t>(C));
    for (int64_t t = 0; t < a.y.rows(); ++t) {
      double mean = 0, variance = 0;
      for (int64_t c = 0; c < C; ++c) {
        T sum = a.x.row<T>(t)[c];
        if (!a.addend.is_empty()) a.sum.row<T>(t)[c] = sum = sum + a.addend.row<T>(t)[c];
        s[size_t(c)] = double(sum);
        mean += double(sum) / double(C);
      }
      for (const double v : s) variance += (v - mean) * (v - mean) / double(C);
      const double rstd = 1 / std::sqrt(variance + a.eps);
      for (int64_t c = 0; c < C; ++c)
        a.y.row<T>(t)[c] = T((s[size_t(c)] - mean) * rstd * double(a.gain.data<T>()[c]) +
                             double(a.bias.data<T>()[c]));
      a.mean.data<T>()[t] = T(mean);
      a.rstd.data<T>()[t] = T(rstd);
    }
  });
}

void layer_norm_backward(ThreadPool&, const LayerNormBackward& a) {
  visit_float(a.dy.dtype(), [&]<class T>() {
    const int64_t C = a.dy.cols();
    std::vector<double> dgain(static_cast<size_t>(C)), dbias(static_cast<size_t>(C));
    for (int64_t t = 0; t < a.dy.rows(); ++t) {
      const T* dy = a.dy.row<T>(t);
      const double mean = double(a.mean.data<T>()[t]), rstd = double(a.rstd.data<T>()[t]);
      const auto g = [&](int64_t c) { return double(dy[c]) * double(a.gain.data<T>()[c]); };
      const auto xhat = [&](int64_t c) { return (double(a.sum.row<T>(t)[c]) - mean) * rstd; };

      double avg_g = 0, avg_g_xhat = 0;
      for (int64_t c = 0; c < C; ++c) {
        avg_g += g(c) / double(C);
        avg_g_xhat += g(c) * xhat(c) / double(C);
        dgain[size_t(c)] += double(dy[c]) * xhat(c);
        dbias[size_t(c)] += double(dy[c]);
      }
      for (int64_t c = 0; c < C; ++c)
        a.ds.row<T>(t)[c] = T(rstd * (g(c) - avg_g - xhat(c) * avg_g_xhat));
    }
    for (int64_t c = 0; c < C; ++c) {
      a.dgain.data<T>()[c] += T(dgain[size_t(c)]);
      a.dbias.data<T>()[c] += T(dbias[size_t(c)]);
    }
  });
}

}  // namespace fathom::kernels::reference
