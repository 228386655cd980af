#include <cmath>

#include "core/kernels/kernels_cpu.h"
#include "core/kernels/simd_cpu.h"
#include "core/kernels/tiles_cpu.h"

namespace fathom::kernels::cpu {
namespace {

constexpr int64_t kVocabularyTile = 512;  // columns of logits made by one library call

// Turns a row of logits into its losses and, when asked, into weight (p - q).
void finish_row(const CrossEntropy& a, int64_t t, float* z) {
  const int64_t V = a.w.rows;
  const float e_i = V > 1 ? float(a.smoothing / double(V - 1)) : 0;
  const auto masked = [&](int64_t j) { return lane_mask(std::min(kLanes, V - j)); };
  const __m256 lowest = _mm256_set1_ps(-INFINITY);

  __m256 largest8 = lowest;
  for (int64_t j = 0; j < V; j += kLanes) {
    const __m256i mask = masked(j);
    const __m256 v =
        _mm256_blendv_ps(lowest, _mm256_maskload_ps(z + j, mask), _mm256_castsi256_ps(mask));
    largest8 = _mm256_max_ps(largest8, v);
  }
  const float largest = horizontal_max(largest8);
  __m256 sum8 = _mm256_setzero_ps(), shifted8 = _mm256_setzero_ps();
  for (int64_t j = 0; j < V; j += kLanes) {
    const __m256i mask = masked(j);
    const __m256 shifted =
        _mm256_and_ps(_mm256_castsi256_ps(mask),
                      _mm256_sub_ps(_mm256_maskload_ps(z + j, mask), _mm256_set1_ps(largest)));
    shifted8 = _mm256_add_ps(shifted8, shifted);
    sum8 = _mm256_add_ps(sum8, _mm256_and_ps(_mm256_castsi256_ps(mask), exp8(shifted)));
  }
  const float log_sum = std::log(horizontal_sum(sum8));
  const float lse = largest + log_sum;
  const int64_t target = a.targets.as<int32_t>()[t];
  const float nll = lse - z[target];
  const float all = float(V) * log_sum - horizontal_sum(shifted8);  // sum over v of -log p_v
  a.nll.as<float>()[t] = nll;
  a.loss.as<float>()[t] = (1 - float(a.smoothing) - e_i) * nll + e_i * all;
  if (a.dx.is_empty()) return;

  const float weight = float(a.weight);
  const __m256 shift = _mm256_set1_ps(lse), elsewhere = _mm256_set1_ps(e_i);
  for (int64_t j = 0; j < V; j += kLanes) {
    const __m256i mask = masked(j);
    const __m256 p = exp8(_mm256_sub_ps(_mm256_maskload_ps(z + j, mask), shift));
    _mm256_maskstore_ps(z + j, mask,
                        _mm256_mul_ps(_mm256_set1_ps(weight), _mm256_sub_ps(p, elsewhere)));
  }
  z[target] -= weight * (1 - float(a.smoothing) - e_i);
}

}  // namespace

void cross_entropy(HostContext& context, const CrossEntropy& a) {
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
      for (int64_t t = at; t < at + count; ++t) finish_row(a, first + t, a.slice.row<float>(t));
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
