#include "core/kernels/dropout_cpu.h"
#include "core/kernels/kernels_cpu.h"
#include "core/kernels/simd_cpu.h"
#include "core/kernels/tiles_cpu.h"

namespace fathom::kernels::cpu {
namespace {

void finish_rows(Scratch& scratch, const LinearForward& a, int64_t first, int64_t rows) {
  const SimdLoops& loops = simd();
  const float* bias = a.b.is_empty() ? nullptr : a.b.as<float>();
  for (int64_t t = first; t < first + rows; ++t)
    loops.finish_linear(a.y.cols, bias, a.relu,
                        row_factors(loops, scratch, a.dropout, t, 0, a.y.cols), a.y.row<float>(t));
}

void mask_rows(Scratch& scratch, const LinearBackward& a, int64_t first, int64_t rows) {
  const SimdLoops& loops = simd();
  const int64_t N = a.dy.cols;
  const float scale = float(a.dropout.keep_scale());
  for (int64_t t = first; t < first + rows; ++t) {
    const float* dy = a.dy.row<float>(t);
    float* dz = a.scratch.row<float>(t);
    if (a.relu)  // a dropped element is 0 after the relu as well: y tells both
      loops.relu_gradient(N, scale, dy, a.y.row<float>(t), dz);
    else
      loops.multiply(N, dy, row_factors(loops, scratch, a.dropout, t, 0, N), dz);
  }
}

}  // namespace

void linear_forward(HostContext& context, const LinearForward& a) {
  const int64_t T = a.y.rows, N = a.y.cols, K = a.x.cols;
  const int64_t tile = a.batch_invariant ? kFixedTileRows : row_tile(T);
  for_rows(context, T, tile, [&](int64_t first, int64_t rows, Scratch& scratch) {
    const auto product = a.batch_invariant ? rowwise_product_nt : product_nt;
    product(rows, N, K, a.x.row<float>(first), a.x.stride, a.w.as<float>(), a.w.stride,
            a.y.row<float>(first), a.y.stride);
    finish_rows(scratch, a, first, rows);
  });
}

void linear_backward(HostContext& context, const LinearBackward& a) {
  const SimdLoops& loops = simd();
  const int64_t T = a.dy.rows, N = a.dy.cols, K = a.x.cols;
  const bool is_masked = !a.scratch.is_empty();
  const Matrix& dz = is_masked ? a.scratch : a.dy;
  if (is_masked)
    for_rows(context, T, kRowChunk, [&](int64_t first, int64_t rows, Scratch& scratch) {
      mask_rows(scratch, a, first, rows);
    });

  const int64_t row_rows = row_tile(T), weight_rows = weight_tile(N);
  const int64_t row_tasks = a.dx.is_empty() ? 0 : ceil_div(T, row_rows);
  context.pool().run(row_tasks + ceil_div(N, weight_rows), [&](int64_t task) {
    if (task < row_tasks) {
      const int64_t first = task * row_rows, rows = std::min(row_rows, T - first);
      product_nn(rows, K, N, dz.row<float>(first), dz.stride, a.w.as<float>(), a.w.stride,
                 a.dx.row<float>(first), a.dx.stride);
      return;
    }
    const int64_t first = (task - row_tasks) * weight_rows, rows = std::min(weight_rows, N - first);
    add_product_tn(rows, K, T, dz.as<float>() + first, dz.stride, a.x.as<float>(), a.x.stride,
                   a.dw.row<float>(first), a.dw.stride);
    if (a.db.is_empty()) return;
    float sums[512] = {};  // weight_tile's largest
    for (int64_t t = 0; t < T; ++t) loops.add(rows, dz.row<float>(t) + first, sums);
    loops.add(rows, sums, a.db.as<float>() + first);
  });
}

}  // namespace fathom::kernels::cpu
