#include <cmath>
#include <vector>

#include "core/kernels/kernels_cpu.h"
#include "core/kernels/tiles_cpu.h"

namespace fathom::kernels::cpu {

void layer_norm_forward(HostContext& context, const LayerNormForward& a) {
  const int64_t C = a.y.cols;
  const float* __restrict gain = a.gain.as<float>();
  const float* __restrict bias = a.bias.as<float>();
  for_rows(context, a.y.rows, kRowChunk, [&](int64_t first, int64_t rows, Scratch&) {
    for (int64_t t = first; t < first + rows; ++t) {
      const float* s = a.x.row<float>(t);
      float* __restrict y = a.y.row<float>(t);
      float total = 0;
      if (!a.addend.is_empty()) {
        const float* __restrict x = a.x.row<float>(t);
        const float* __restrict o = a.addend.row<float>(t);
        float* __restrict sum = a.sum.row<float>(t);
#pragma omp simd reduction(+ : total)
        for (int64_t c = 0; c < C; ++c) {
          sum[c] = x[c] + o[c];
          total += sum[c];
        }
        s = sum;
      } else {
#pragma omp simd reduction(+ : total)
        for (int64_t c = 0; c < C; ++c) total += s[c];
      }
      const float mean = total / float(C);
      float squares = 0;
#pragma omp simd reduction(+ : squares)
      for (int64_t c = 0; c < C; ++c) squares += (s[c] - mean) * (s[c] - mean);
      const float rstd = 1 / std::sqrt(squares / float(C) + float(a.eps));
      for (int64_t c = 0; c < C; ++c) y[c] = (s[c] - mean) * rstd * gain[c] + bias[c];
      a.mean.as<float>()[t] = mean;
      a.rstd.as<float>()[t] = rstd;
    }
  });
}

// Sums over rows are made per chunk of rows, then over the chunks in order.
void layer_norm_backward(HostContext& context, const LayerNormBackward& a) {
  const int64_t C = a.dy.cols, T = a.dy.rows;
  const float* __restrict gain = a.gain.as<float>();
  std::vector<float> partial(size_t(ceil_div(T, kRowChunk) * 2 * C));
  for_rows(context, T, kRowChunk, [&](int64_t first, int64_t rows, Scratch&) {
    float* __restrict dgain = &partial[size_t(first / kRowChunk * 2 * C)];
    float* __restrict dbias = dgain + C;
    for (int64_t t = first; t < first + rows; ++t) {
      const float* __restrict dy = a.dy.row<float>(t);
      const float* __restrict s = a.sum.row<float>(t);
      float* __restrict ds = a.ds.row<float>(t);
      const float mean = a.mean.as<float>()[t], rstd = a.rstd.as<float>()[t];
      float sum_g = 0, sum_g_xhat = 0;
#pragma omp simd reduction(+ : sum_g, sum_g_xhat)
      for (int64_t c = 0; c < C; ++c) {
        const float xhat = (s[c] - mean) * rstd, g = dy[c] * gain[c];
        sum_g += g;
        sum_g_xhat += g * xhat;
        dgain[c] += dy[c] * xhat;
        dbias[c] += dy[c];
      }
      const float avg_g = sum_g / float(C), avg_g_xhat = sum_g_xhat / float(C);
      for (int64_t c = 0; c < C; ++c) {
        const float xhat = (s[c] - mean) * rstd;
        ds[c] = rstd * (dy[c] * gain[c] - avg_g - xhat * avg_g_xhat);
      }
    }
  });
  float* __restrict dgain = a.dgain.as<float>();
  float* __restrict dbias = a.dbias.as<float>();
  for (size_t at = 0; at < partial.size(); at += size_t(2 * C)) {
    for (int64_t c = 0; c < C; ++c) {
      dgain[c] += partial[at + size_t(c)];
      dbias[c] += partial[at + size_t(C + c)];
    }
  }
}

}  // namespace fathom::kernels::cpu
