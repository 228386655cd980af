#include <algorithm>
#include <cmath>

#include "core/kernels/chunks.h"
#include "core/kernels/kernels_cpu.h"
#include "core/kernels/tiles_cpu.h"

namespace fathom::kernels::cpu {

void adam(HostContext& context, const Adam& a) {
  const double* control = a.control.as<double>();
  if (control[4] != 0) return;
  const float b1 = float(a.beta1), b2 = float(a.beta2), eps = float(a.epsilon);
  const float c1 = float(1 - a.beta1), c2 = float(1 - a.beta2);
  const float rate = float(a.rate), root = float(a.root), keep = float(1 - a.decay);
  const float scale = float(control[3]);
  const int64_t count_all = a.weights.cols;
  context.pool().run(ceil_div(count_all, kChunkElements), [&](int64_t chunk) {
    const int64_t first = chunk * kChunkElements,
                  count = std::min(int64_t{kChunkElements}, count_all - first);
    float* __restrict w = a.weights.as<float>() + first;
    float* __restrict m = a.m.as<float>() + first;
    float* __restrict v = a.v.as<float>() + first;
    const float* __restrict gradients = a.gradient.as<float>() + first;
    for (int64_t i = 0; i < count; ++i) {
      const float g = gradients[i] * scale;
      m[i] = b1 * m[i] + c1 * g;
      v[i] = b2 * v[i] + c2 * g * g;
      w[i] = keep * w[i] - rate * m[i] / (std::sqrt(v[i]) * root + eps);
    }
  });
}

void update_norms(HostContext& context, const UpdateNorms& a) {
  context.pool().run(a.chunks.rows, [&](int64_t k) {
    const Chunk chunk = chunk_at(a.chunks, k);
    const float* w = a.weights.as<float>() + chunk.first;
    const float* m = a.m.as<float>() + chunk.first;
    const float* v = a.v.as<float>() + chunk.first;
    double sum = 0;
    for (int64_t i = 0; i < chunk.count; ++i) {
      const double change = a.decay * double(w[i]) +
                            a.rate * double(m[i]) / (std::sqrt(double(v[i])) * a.root + a.epsilon);
      sum += change * change;
    }
    a.sums.as<double>()[k] = sum;
  });
}

}  // namespace fathom::kernels::cpu
