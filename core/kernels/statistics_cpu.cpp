#include "core/kernels/chunks.h"
#include "core/kernels/kernels_cpu.h"
#include "core/kernels/simd_cpu.h"

namespace fathom::kernels::cpu {

void squared_norms(HostContext& context, const SquaredNorms& a) {
  const SimdLoops& loops = simd();
  context.pool().run(a.chunks.rows, [&](int64_t i) {
    const Chunk chunk = chunk_at(a.chunks, i);
    const float* x = a.x.as<float>() + chunk.first;
    a.sums.as<double>()[i] = loops.dot_f64(chunk.count, x, x);
  });
}

void count_values(HostContext& context, const CountValues& a) {
  const SimdLoops& loops = simd();
  context.pool().run(a.chunks.rows, [&](int64_t i) {
    const Chunk chunk = chunk_at(a.chunks, i);
    const ValueCounts counts = loops.count_values(chunk.count, a.x.as<float>() + chunk.first);
    a.counts.row<double>(i)[0] = double(counts.zeros);
    a.counts.row<double>(i)[1] = double(counts.nonfinite);
  });
}

}  // namespace fathom::kernels::cpu
