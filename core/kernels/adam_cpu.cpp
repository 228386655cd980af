#include <algorithm>

#include "core/kernels/chunks.h"
#include "core/kernels/kernels_cpu.h"
#include "core/kernels/simd_cpu.h"
#include "core/kernels/tiles_cpu.h"

namespace fathom::kernels::cpu {

void adam(HostContext& context, const Adam& a) {
  const double* control = a.control.as<double>();
  if (control[4] != 0) return;
  const SimdLoops& loops = simd();
  const float scale = float(control[3]);
  const int64_t count_all = a.weights.cols;
  context.pool().run(ceil_div(count_all, kChunkElements), [&](int64_t chunk) {
    const int64_t first = chunk * kChunkElements,
                  count = std::min(int64_t{kChunkElements}, count_all - first);
    loops.adam(count, a, scale, a.gradient.as<float>() + first, a.m.as<float>() + first,
               a.v.as<float>() + first, a.weights.as<float>() + first);
  });
}

void update_norms(HostContext& context, const UpdateNorms& a) {
  const SimdLoops& loops = simd();
  context.pool().run(a.chunks.rows, [&](int64_t k) {
    const Chunk chunk = chunk_at(a.chunks, k);
    a.sums.as<double>()[k] =
        loops.update_norm(chunk.count, a, a.weights.as<float>() + chunk.first,
                          a.m.as<float>() + chunk.first, a.v.as<float>() + chunk.first);
  });
}

}  // namespace fathom::kernels::cpu
