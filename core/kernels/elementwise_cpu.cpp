#include <cmath>
#include <numbers>
#include <vector>

#include "core/kernels/dropout_cpu.h"
#include "core/kernels/kernels_cpu.h"
#include "core/kernels/simd_cpu.h"
#include "core/kernels/tiles_cpu.h"

namespace fathom::kernels::cpu {
namespace {

// Multiplies a row by its dropout factors.
void drop_row(const SimdLoops& loops, Scratch& scratch, const Dropout& dropout, int64_t row,
              int64_t C, float* y) {
  const float* factors = row_factors(loops, scratch, dropout, row, 0, C);
  if (factors != nullptr) loops.multiply(C, y, factors, y);
}

}  // namespace

void add_scaled(HostContext& context, const AddScaled& a) {
  const auto add = [&a, &loops = simd()](const float* x, const float* z, float* y, int64_t count) {
    if (z == nullptr)
      loops.scale(count, float(a.a), x, y);
    else
      loops.add_scaled(count, float(a.a), x, float(a.b), z, y);
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
  const SimdLoops& loops = simd();
  const int64_t C = a.y.cols;
  for_rows(context, a.y.rows, kRowChunk, [&](int64_t first, int64_t rows, Scratch& scratch) {
    for (int64_t t = first; t < first + rows; ++t) {
      const float* x = a.x.row<float>(t);
      float* y = a.y.row<float>(t);
      for (int64_t c = 0; c < C; ++c)
        y[c] = 0.5f * x[c] * (1 + std::erf(x[c] * float(1 / std::numbers::sqrt2)));
      drop_row(loops, scratch, a.dropout, t, C, y);
    }
  });
}

void gelu_backward(HostContext& context, const GeluBackward& a) {
  const SimdLoops& loops = simd();
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
      drop_row(loops, scratch, a.dropout, t, C, dx);
    }
  });
}

void embedding_forward(HostContext& context, const EmbeddingForward& a) {
  const int64_t C = a.y.cols;
  const SimdLoops& loops = simd();
  for_rows(context, a.y.rows, kRowChunk, [&](int64_t first, int64_t rows, Scratch& scratch) {
    for (int64_t t = first; t < first + rows; ++t) {
      float* y = a.y.row<float>(t);
      loops.add_scaled(C, float(a.scale), a.table.row<float>(a.tokens.as<int32_t>()[t]), 1,
                       a.sinusoids.row<float>(a.positions.as<int32_t>()[t]), y);
      drop_row(loops, scratch, a.dropout, t, C, y);
    }
  });
}

// A task owns 64 columns of the table and walks all tokens in order.
void embedding_backward(HostContext& context, const EmbeddingBackward& a) {
  constexpr int64_t kColumns = 64;
  const int64_t T = a.dy.rows, C = a.dy.cols;
  const SimdLoops& loops = simd();
  context.pool().run(ceil_div(C, kColumns), [&](int64_t task) {
    const int64_t first = task * kColumns, count = std::min(kColumns, C - first);
    std::vector<float> factors(size_t(round_up(first + count, kFactorBlock)), 1.0f);
    for (int64_t t = 0; t < T; ++t) {
      if (a.dropout.is_active())
        loops.dropout_factors(a.dropout, uint32_t(a.dropout.rows.position[t]),
                              uint32_t(a.dropout.rows.sentence[t]), 0, first + count,
                              factors.data());
      loops.add_product(count, float(a.scale), a.dy.row<float>(t) + first, &factors[size_t(first)],
                        a.dtable.row<float>(a.tokens.as<int32_t>()[t]) + first);
    }
  });
}

}  // namespace fathom::kernels::cpu
