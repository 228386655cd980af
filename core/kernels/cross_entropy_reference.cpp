#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/kernels/kernels_reference.h"

namespace fathom::kernels::reference {

// With q the smoothed target distribution (1 - e on the target, e_i elsewhere), the objective is
// -sum_v q_v log p_v and its derivative by the logits is p - q.
void cross_entropy(HostContext&, const CrossEntropy& a) {
  visit_float(a.x.dtype, [&]<class T>() {
    using A = Arithmetic<T>;
    using W = Wide<T>;
    const int64_t C = a.x.cols, V = a.w.rows;
    const A smoothing = A(a.smoothing), weight = A(a.weight);
    const A e_i = V > 1 ? smoothing / A(V - 1) : A(0);
    std::vector<A> z(static_cast<size_t>(V)), dw(a.dw.is_empty() ? 0 : size_t(V * C));
    for (int64_t t = 0; t < a.x.rows; ++t) {
      A largest = std::numeric_limits<A>::lowest(), denominator = 0, sum_z = 0;
      for (int64_t v = 0; v < V; ++v) {
        A s = 0;
        for (int64_t c = 0; c < C; ++c) s += A(a.x.row<T>(t)[c]) * A(a.w.row<T>(v)[c]);
        z[size_t(v)] = s;
        sum_z += s;
        largest = std::max(largest, s);
      }
      for (const A v : z) denominator += std::exp(v - largest);
      const A lse = largest + std::log(denominator);
      const int64_t target = a.targets.as<int32_t>()[t];
      const A nll = lse - z[size_t(target)];
      const A all = A(V) * lse - sum_z;  // sum over v of -log p_v
      a.nll.as<W>()[t] = W(nll);
      a.loss.as<W>()[t] = W((1 - smoothing - e_i) * nll + e_i * all);
      if (a.dx.is_empty()) continue;

      for (int64_t c = 0; c < C; ++c) {
        A dx = 0;
        for (int64_t v = 0; v < V; ++v) {
          const A q = v == target ? 1 - smoothing : e_i;
          const A dz = weight * (std::exp(z[size_t(v)] - lse) - q);
          dx += dz * A(a.w.row<T>(v)[c]);
          dw[size_t(v * C + c)] += dz * A(a.x.row<T>(t)[c]);
        }
        a.dx.row<T>(t)[c] = T(dx);
      }
    }
    if (a.dx.is_empty()) return;
    for (int64_t v = 0; v < V; ++v)
      for (int64_t c = 0; c < C; ++c) a.dw.row<W>(v)[c] += W(dw[size_t(v * C + c)]);
  });
}

}  // namespace fathom::kernels::reference
