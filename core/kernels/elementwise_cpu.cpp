#include <cmath>
#include <numbers>
#include <vector>

#include "core/kernels/kernels_cpu.h"
#include "core/kernels/simd_cpu.h"
#include "core/kernels/tiles_cpu.h"

namespace fathom::kernels::cpu {
namespace {

// Multiplies a row by its dropout factors.
void drop_row(Scratch& scratch, const Dropout& dropout, int64_t row, int64_t C,
              float* __restrict y) {
  if (!dropout.is_active()) return;
  float* __restrict factors = scratch.floats(Scratch::kFactors, round_up(C, 64));
  dropout_factors(dropout, uint32_t(dropout.rows.position[row]),
                  uint32_t(dropout.rows.sentence[row]), 0, C, factors);
  for (int64_t c = 0; c < C; ++c) y[c] *= factors[c];
}

}  // namespace

void add_scaled(HostContext& context, const AddScaled& a) {
  const float fa = float(a.a), fb = float(a.b);
  const auto add = [&](const float* x, const float* z, float* y, int64_t count) {
    if (z == nullptr) {
#pragma omp simd
      for (int64_t c = 0; c < count; ++c) y[c] = fa * x[c];
    } else if (fa == 1 && fb == 1) {
#pragma omp simd
      for (int64_t c = 0; c < count; ++c) y[c] = x[c] + z[c];
    } else {
#pragma omp simd
      for (int64_t c = 0; c < count; ++c) y[c] = fa * x[c] + fb * z[c];
    }
  };
  constexpr int64_t kPiece = 1 << 15;  // elements of a task, where a row is a flat buffer
  const int64_t C = a.y.cols;
  if (a.y.rows == 1 && C > kPiece) {
    context.pool().run(ceil_div(C, kPiece), [&](int64_t i) {
      const int64_t first = i * kPiece;
      add(a.x.as<float>() + first, a.z.is_empty() ? nullptr : a.z.as<float>() + first,
          a.y.as<float>() + first, std::min(kPiece, C - first));
    });
    return;
  }
  for_rows(context, a.y.rows, kRowChunk, [&](int64_t first, int64_t rows, Scratch&) {
    for (int64_t t = first; t < first + rows; ++t)
      add(a.x.row<float>(t), a.z.is_empty() ? nullptr : a.z.row<float>(t), a.y.row<float>(t), C);
  });
}

void gelu_forward(HostContext& context, const GeluForward& a) {
  const int64_t C = a.y.cols;
  for_rows(context, a.y.rows, kRowChunk, [&](int64_t first, int64_t rows, Scratch& scratch) {
    for (int64_t t = first; t < first + rows; ++t) {
      const float* x = a.x.row<float>(t);
      float* y = a.y.row<float>(t);
      for (int64_t c = 0; c < C; ++c)
        y[c] = 0.5f * x[c] * (1 + std::erf(x[c] * float(1 / std::numbers::sqrt2)));
      drop_row(scratch, a.dropout, t, C, y);
    }
  });
}

void gelu_backward(HostContext& context, const GeluBackward& a) {
  const int64_t C = a.dx.cols;
  for_rows(context, a.dx.rows, kRowChunk, [&](int64_t first, int64_t rows, Scratch& scratch) {
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
      drop_row(scratch, a.dropout, t, C, dx);
    }
  });
}

void embedding_forward(HostContext& context, const EmbeddingForward& a) {
  const int64_t C = a.y.cols;
  const float scale = float(a.scale);
  for_rows(context, a.y.rows, kRowChunk, [&](int64_t first, int64_t rows, Scratch& scratch) {
    for (int64_t t = first; t < first + rows; ++t) {
      const float* __restrict e = a.table.row<float>(a.tokens.as<int32_t>()[t]);
      const float* __restrict p = a.sinusoids.row<float>(a.positions.as<int32_t>()[t]);
      float* __restrict y = a.y.row<float>(t);
      for (int64_t c = 0; c < C; ++c) y[c] = scale * e[c] + p[c];
      drop_row(scratch, a.dropout, t, C, y);
    }
  });
}

// A task owns 64 columns of the table and walks all tokens in order.
void embedding_backward(HostContext& context, const EmbeddingBackward& a) {
  constexpr int64_t kColumns = 64;
  const int64_t T = a.dy.rows, C = a.dy.cols;
  const float scale = float(a.scale);
  context.pool().run(ceil_div(C, kColumns), [&](int64_t task) {
    const int64_t first = task * kColumns, count = std::min(kColumns, C - first);
    std::vector<float> factors(size_t(round_up(first + count, 64)), 1.0f);
    for (int64_t t = 0; t < T; ++t) {
      if (a.dropout.is_active())
        dropout_factors(a.dropout, uint32_t(a.dropout.rows.position[t]),
                        uint32_t(a.dropout.rows.sentence[t]), 0, first + count, factors.data());
      const float* __restrict dy = a.dy.row<float>(t) + first;
      float* __restrict to = a.dtable.row<float>(a.tokens.as<int32_t>()[t]) + first;
      for (int64_t c = 0; c < count; ++c) to[c] += scale * dy[c] * factors[size_t(first + c)];
    }
  });
}

}  // namespace fathom::kernels::cpu
