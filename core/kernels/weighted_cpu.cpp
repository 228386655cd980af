#include <vector>

#include "core/kernels/kernels_cpu.h"
#include "core/kernels/tiles_cpu.h"

namespace fathom::kernels::cpu {

namespace {

void set_row(float* y, float w, const float* x, int64_t C) {
#pragma omp simd
  for (int64_t c = 0; c < C; ++c) y[c] = w * x[c];
}

void add_row(float* y, float w, const float* x, int64_t C) {
#pragma omp simd
  for (int64_t c = 0; c < C; ++c) y[c] += w * x[c];
}

}  // namespace

void add_weighted(HostContext& context, const AddWeighted& a) {
  const float w = a.weights.as<float>()[a.index];
  const auto update = a.accumulate ? add_row : set_row;
  for_rows(context, a.y.rows, kRowChunk, [&](int64_t first, int64_t rows, Scratch&) {
    for (int64_t t = first; t < first + rows; ++t)
      update(a.y.row<float>(t), w, a.x.row<float>(t), a.y.cols);
  });
}

// Per chunk of rows, then over the chunks in order.
void weight_gradient(HostContext& context, const WeightGradient& a) {
  std::vector<double> partial(size_t(ceil_div(a.x.rows, kRowChunk)));
  for_rows(context, a.x.rows, kRowChunk, [&](int64_t first, int64_t rows, Scratch&) {
    double sum = 0;
    for (int64_t t = first; t < first + rows; ++t) {
      const float* x = a.x.row<float>(t);
      const float* dy = a.dy.row<float>(t);
#pragma omp simd reduction(+ : sum)
      for (int64_t c = 0; c < a.x.cols; ++c) sum += double(dy[c]) * double(x[c]);
    }
    partial[size_t(first / kRowChunk)] = sum;
  });
  double sum = 0;
  for (const double p : partial) sum += p;
  a.dweights.as<float>()[a.index] += float(sum);
}

void scale_columns(HostContext& context, const ScaleColumns& a) {
  const float* gain = a.gain.as<float>();
  for_rows(context, a.y.rows, kRowChunk, [&](int64_t first, int64_t rows, Scratch&) {
    for (int64_t t = first; t < first + rows; ++t) {
      const float* x = a.x.row<float>(t);
      float* y = a.y.row<float>(t);
#pragma omp simd
      for (int64_t c = 0; c < a.y.cols; ++c) y[c] = x[c] * gain[c];
    }
  });
}

void scale_columns_backward(HostContext& context, const ScaleColumnsBackward& a) {
  const int64_t C = a.dx.cols;
  const float* gain = a.gain.as<float>();
  std::vector<float> partial(size_t(ceil_div(a.dx.rows, kRowChunk) * C));
  for_rows(context, a.dx.rows, kRowChunk, [&](int64_t first, int64_t rows, Scratch&) {
    float* __restrict dgain = &partial[size_t(first / kRowChunk * C)];
    for (int64_t t = first; t < first + rows; ++t) {
      const float* __restrict x = a.x.row<float>(t);
      const float* __restrict dy = a.dy.row<float>(t);
      float* __restrict dx = a.dx.row<float>(t);
      for (int64_t c = 0; c < C; ++c) {
        dgain[c] += dy[c] * x[c];
        dx[c] = dy[c] * gain[c];
      }
    }
  });
  float* __restrict dgain = a.dgain.as<float>();
  for (size_t at = 0; at < partial.size(); at += size_t(C))
    for (int64_t c = 0; c < C; ++c) dgain[c] += partial[at + size_t(c)];
}

}  // namespace fathom::kernels::cpu
