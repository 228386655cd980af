#include <cmath>
#include <limits>

#include "core/kernels/chunks.h"
#include "core/kernels/kernels_cpu.h"

namespace fathom::kernels::cpu {

void squared_norms(HostContext& context, const SquaredNorms& a) {
  context.pool().run(a.chunks.rows, [&](int64_t i) {
    const Chunk chunk = chunk_at(a.chunks, i);
    const float* x = a.x.as<float>() + chunk.first;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < chunk.count; ++k) sum += double(x[k]) * double(x[k]);
    a.sums.as<double>()[i] = sum;
  });
}

void count_values(HostContext& context, const CountValues& a) {
  context.pool().run(a.chunks.rows, [&](int64_t i) {
    const Chunk chunk = chunk_at(a.chunks, i);
    const float* x = a.x.as<float>() + chunk.first;
    int64_t zeros = 0, nonfinite = 0;
#pragma omp simd reduction(+ : zeros, nonfinite)
    for (int64_t k = 0; k < chunk.count; ++k) {
      zeros += x[k] == 0.0f;
      nonfinite += !(std::abs(x[k]) <= std::numeric_limits<float>::max());
    }
    a.counts.row<double>(i)[0] = double(zeros);
    a.counts.row<double>(i)[1] = double(nonfinite);
  });
}

}  // namespace fathom::kernels::cpu
