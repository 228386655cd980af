#include <algorithm>
#include <cmath>
#include <vector>

#include "core/kernels/kernels_reference.h"

namespace fathom::kernels::reference {

// With q the smoothed target distribution (1 - e on the target, e_i elsewhere), the objective is
// -sum_v q_v log p_v and its derivative by the logits is p - q.
void cross_entropy(ThreadPool&, const CrossEntropy& a) {
  visit_float(a.x.dtype(), [&]<class T>() {
    const int64_t C = a.x.cols(), V = a.w.rows();
    const double e_i = V > 1 ? a.smoothing / double(V - 1) : 0;
    std::vector<double> z(static_cast<size_t>(V)), dw(a.dw.is_empty() ? 0 : size_t(V * C));
    for (int64_t t = 0; t < a.x.rows(); ++t) {
      double largest = -1e300, denominator = 0, sum_z = 0;
      for (int64_t v = 0; v < V; ++v) {
        double s = 0;
        for (int64_t c = 0; c < C; ++c) s += double(a.x.row<T>(t)[c]) * double(a.w.row<T>(v)[c]);
        z[size_t(v)] = s;
        sum_z += s;
        largest = std::max(largest, s);
      }
      for (const double v : z) denominator += std::exp(v - largest);
      const double lse = largest + std::log(denominator);
      const int64_t target = a.targets[size_t(t)];
      const double nll = lse - z[size_t(target)];
      const double all = double(V) * lse - sum_z;  // sum over v of -log p_v
      a.nll.data<T>()[t] = T(nll);
      a.loss.data<T>()[t] = T((1 - a.smoothing - e_i) * nll + e_i * all);
      if (a.dx.is_empty()) continue;

      for (int64_t c = 0; c < C; ++c) {
        double dx = 0;
        for (int64_t v = 0; v < V; ++v) {
          const double q = v == target ? 1 - a.smoothing : e_i;
          const double dz = a.weight * (std::exp(z[size_t(v)] - lse) - q);
          dx += dz * double(a.w.row<T>(v)[c]);
          dw[size_t(v * C + c)] += dz * double(a.x.row<T>(t)[c]);
        }
        a.dx.row<T>(t)[c] = T(dx);
      }
    }
    if (a.dx.is_empty()) return;
    for (int64_t v = 0; v < V; ++v)
      for (int64_t c = 0; c < C; ++c) a.dw.row<T>(v)[c] += T(dw[size_t(v * C + c)]);
  });
}

}  // namespace fathom::kernels::reference
