#include <vector>

#include "core/kernels/kernels_cpu.h"
#include "core/kernels/simd_cpu.h"
#include "core/kernels/tiles_cpu.h"

namespace fathom::kernels::cpu {

void layer_norm_forward(HostContext& context, const LayerNormForward& a) {
  const SimdLoops& loops = simd();
  const bool has_addend = !a.addend.is_empty();
  for_rows(context, a.y.rows, kRowChunk, [&](int64_t first, int64_t rows, Scratch&) {
    for (int64_t t = first; t < first + rows; ++t) {
      const MeanAndRstd norm = loops.layer_norm(
          a.y.cols, float(a.eps), a.x.row<float>(t), has_addend ? a.addend.row<float>(t) : nullptr,
          a.gain.as<float>(), a.bias.as<float>(), has_addend ? a.sum.row<float>(t) : nullptr,
          a.y.row<float>(t));
      a.mean.as<float>()[t] = norm.mean;
      a.rstd.as<float>()[t] = norm.rstd;
    }
  });
}

// Sums over rows are made per chunk of rows, then over the chunks in order.
void layer_norm_backward(HostContext& context, const LayerNormBackward& a) {
  const SimdLoops& loops = simd();
  const int64_t C = a.dy.cols, T = a.dy.rows;
  std::vector<float> partial(size_t(ceil_div(T, kRowChunk) * 2 * C));
  for_rows(context, T, kRowChunk, [&](int64_t first, int64_t rows, Scratch&) {
    float* dgain = &partial[size_t(first / kRowChunk * 2 * C)];
    float* dbias = dgain + C;
    for (int64_t t = first; t < first + rows; ++t)
      loops.layer_norm_gradient(C, {a.mean.as<float>()[t], a.rstd.as<float>()[t]},
                                a.dy.row<float>(t), a.sum.row<float>(t), a.gain.as<float>(),
                                a.ds.row<float>(t), dgain, dbias);
  });
  for (size_t at = 0; at < partial.size(); at += size_t(2 * C)) {
    loops.add(C, &partial[at], a.dgain.as<float>());
    loops.add(C, &partial[at + size_t(C)], a.dbias.as<float>());
  }
}

}  // namespace fathom::kernels::cpu
