#include <cmath>

#include "core/kernels/kernels_cpu.h"
#include "core/kernels/simd_cpu.h"
#include "core/kernels/tiles_cpu.h"

namespace fathom::kernels::cpu {
namespace {

constexpr int64_t kVocabularyTile = 512;  // columns of logits made by one library call

// Turns a row of logits into its losses and, when asked, into weight (p - q).
void finish_row(const SimdLoops& loops, const CrossEntropy& a, int64_t t, float* z) {
  const int64_t V = a.w.rows;
  const float e_i = V > 1 ? float(a.smoothing / double(V - 1)) : 0;
  const RowSums row = loops.row_sums(V, z);
  const float log_sum = std::log(row.exps);
  const float lse = row.largest + log_sum;
  const int64_t target = a.targets.as<int32_t>()[t];
  const float nll = lse - z[target];
  const float all = float(V) * log_sum - row.shifted;  // sum over v of -log p_v
  const float at_target = 1 - float(a.smoothing) - e_i;
  a.nll.as<float>()[t] = nll;
  a.loss.as<float>()[t] = at_target * nll + e_i * all;
  if (a.dx.is_empty()) return;
  loops.logit_gradient(V, lse, float(a.weight), e_i, z);
  z[target] -= float(a.weight) * at_target;
}

}  // namespace

void cross_entropy(HostContext& context, const CrossEntropy& a) {
  const SimdLoops& loops = simd();
  const int64_t T = a.x.rows, C = a.x.cols, V = a.w.rows;
  const int64_t tile = kVocabularyTile;
  const auto product = a.batch_invariant ? rowwise_product_nt : product_nt;
  for (int64_t first = 0; first < T; first += kCrossEntropyRows) {
    const int64_t rows = std::min(kCrossEntropyRows, T - first);
    const float* x = a.x.row<float>(first);
    context.pool().run(ceil_div(V, tile), [&](int64_t i) {
      product(rows, std::min(tile, V - i * tile), C, x, a.x.stride, a.w.row<float>(i * tile),
              a.w.stride, a.slice.as<float>() + i * tile, V);
    });
    for_rows(context, rows, 16, [&](int64_t at, int64_t count, Scratch&) {
      for (int64_t t = at; t < at + count; ++t)
        finish_row(loops, a, first + t, a.slice.row<float>(t));
    });
    if (a.dx.is_empty()) continue;
    const int64_t row_tasks = ceil_div(rows, 32);
    context.pool().run(row_tasks + ceil_div(V, tile), [&](int64_t i) {
      if (i < row_tasks) {
        const int64_t at = i * 32, count = std::min<int64_t>(32, rows - at);
        product_nn(count, C, V, a.slice.row<float>(at), V, a.w.as<float>(), a.w.stride,
                   a.dx.row<float>(first + at), a.dx.stride);
      } else {
        const int64_t at = (i - row_tasks) * tile, count = std::min(tile, V - at);
        add_product_tn(count, C, rows, a.slice.as<float>() + at, V, x, a.x.stride,
                       a.dw.row<float>(at), a.dw.stride);
      }
    });
  }
}

}  // namespace fathom::kernels::cpu
