#include <cmath>

#include "core/kernels/chunks.h"
#include "core/kernels/kernels_reference.h"

namespace fathom::kernels::reference {

// In the type of the weights, as the formula says, one rounding an operation: the state of a run
// must not depend on how wide a device computes.
void adam(HostContext&, const Adam& a) {
  const double* control = a.control.as<double>();
  if (control[4] != 0) return;
  visit_float(a.weights.dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, Bf16>) {
      const T b1 = T(a.beta1), b2 = T(a.beta2), eps = T(a.epsilon);
      const T c1 = T(1 - a.beta1), c2 = T(1 - a.beta2);
      const T rate = T(a.rate), root = T(a.root), keep = T(1 - a.decay), scale = T(control[3]);
      T* w = a.weights.as<T>();
      T* m = a.m.as<T>();
      T* v = a.v.as<T>();
      const T* gradient = a.gradient.as<T>();
      for (int64_t i = 0; i < a.weights.cols; ++i) {
        const T g = gradient[i] * scale;
        m[i] = b1 * m[i] + c1 * g;
        v[i] = b2 * v[i] + c2 * g * g;
        w[i] = keep * w[i] - rate * m[i] / (std::sqrt(v[i]) * root + eps);
        if (!a.working.is_empty()) store(a.working, 0, i, double(w[i]));
      }
    }
  });
}

void update_norms(HostContext&, const UpdateNorms& a) {
  for (int64_t k = 0; k < a.chunks.rows; ++k) {
    const Chunk chunk = chunk_at(a.chunks, k);
    double sum = 0;
    for (int64_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
      const double change =
          a.decay * load(a.weights, 0, i) +
          a.rate * load(a.m, 0, i) / (std::sqrt(load(a.v, 0, i)) * a.root + a.epsilon);
      sum += change * change;
    }
    a.sums.as<double>()[k] = sum;
  }
}

}  // namespace fathom::kernels::reference
