#include <cmath>
#include <numbers>
#include <vector>

#include "core/kernels/kernels_cpu.h"
#include "core/kernels/simd_cpu.h"
#include "core/kernels/tiles_cpu.h"

namespace fathom::kernels::cpu {
namespace {

// Multiplies a row by its dropout factors.
void drop_row(const Dropout& dropout, int64_t row, int64_t C, float* __restrict y) {
  if (!dropout.is_active()) return;
  thread_local std::vector<float> factors;
  factors.resize(size_t(round_up(C, 64)));
  dropout_factors(dropout, dropout.rows.position[size_t(row)], dropout.rows.sentence[size_t(row)],
                  0, C, factors.data());
  for (int64_t c = 0; c < C; ++c) y[c] *= factors[size_t(c)];
}

}  // namespace

void add_scaled(ThreadPool& pool, const AddScaled& a) {
  const int64_t C = a.y.cols();
  const float fa = float(a.a), fb = float(a.b);
  for_rows(pool, a.y.rows(), kRowChunk, [&](int64_t first, int64_t rows) {
    for (int64_t t = first; t < first + rows; ++t) {
      const float* x = a.x.row<float>(t);
      const float* z = a.z.row<float>(t);
      float* y = a.y.row<float>(t);
      if (fa == 1 && fb == 1) {
#pragma omp simd
        for (int64_t c = 0; c < C; ++c) y[c] = x[c] + z[c];
      } else {
#pragma omp simd
        for (int64_t c = 0; c < C; ++c) y[c] = fa * x[c] + fb * z[c];
      }
    }
  });
}

void gelu_forward(ThreadPool& pool, const GeluForward& a) {
  const int64_t C = a.y.cols();
  for_rows(pool, a.y.rows(), kRowChunk, [&](int64_t first, int64_t rows) {
    for (int64_t t = first; t < first + rows; ++t) {
      const float* x = a.x.row<float>(t);
      float* y = a.y.row<float>(t);
      for (int64_t c = 0; c < C; ++c)
        y[c] = 0.5f * x[c] * (1 + std::erf(x[c] * float(1 / std::numbers::sqrt2)));
      drop_row(a.dropout, t, C, y);
    }
  });
}

void gelu_backward(ThreadPool& pool, const GeluBackward& a) {
  const int64_t C = a.dx.cols();
  for_rows(pool, a.dx.rows(), kRowChunk, [&](int64_t first, int64_t rows) {
    for (int64_t t = first; t < first + rows; ++t) {
      const float* x = a.x.row<float>(t);
      const float* dy = a.dy.row<float>(t);
      float* dx = a.dx.row<float>(t);
      for (int64_t c = 0; c < C; ++c) {
        const float cdf = 0.5f * (1 + std::erf(x[c] * float(1 / std::numbers::sqrt2)));
        const float pdf =
            std::exp(-0.5f * x[c] * x[c]) * float(1 / std::sqrt(2 * std::numbers::pi));
        dx[c] = dy[c] * (cdf + x[c] * pdf);
      }
      drop_row(a.dropout, t, C, dx);
    }
  });
}

void embedding_forward(ThreadPool& pool, const EmbeddingForward& a) {
  const int64_t C = a.y.cols();
  const float scale = float(a.scale);
  for_rows(pool, a.y.rows(), kRowChunk, [&](int64_t first, int64_t rows) {
    for (int64_t t = first; t < first + rows; ++t) {
      const float* __restrict e = a.table.row<float>(a.tokens[size_t(t)]);
      const float* __restrict p = a.sinusoids.row<float>(a.positions[size_t(t)]);
      float* __restrict y = a.y.row<float>(t);
      for (int64_t c = 0; c < C; ++c) y[c] = scale * e[c] + p[c];
      drop_row(a.dropout, t, C, y);
    }
  });
}

// A task owns 64 columns of the table and walks all tokens in order.
void embedding_backward(ThreadPool& pool, const EmbeddingBackward& a) {
  constexpr int64_t kColumns = 64;
  const int64_t T = a.dy.rows(), C = a.dy.cols();
  const float scale = float(a.scale);
  pool.run(ceil_div(C, kColumns), [&](int64_t task) {
    const int64_t first = task * kColumns, count = std::min(kColumns, C - first);
    std::vector<float> factors(size_t(round_up(first + count, 64)), 1.0f);
    for (int64_t t = 0; t < T; ++t) {
      if (a.dropout.is_active())
        dropout_factors(a.dropout, a.dropout.rows.position[size_t(t)],
                        a.dropout.rows.sentence[size_t(t)], 0, first + count, factors.data());
      const float* __restrict dy = a.dy.row<float>(t) + first;
      float* __restrict to = a.dtable.row<float>(a.tokens[size_t(t)]) + first;
      for (int64_t c = 0; c < count; ++c) to[c] += scale * dy[c] * factors[size_t(first + c)];
    }
  });
}

}  // namespace fathom::kernels::cpu
