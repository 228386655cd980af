#include <vector>

#include "core/kernels/kernels_cpu.h"
#include "core/kernels/simd_cpu.h"
#include "core/kernels/tiles_cpu.h"

namespace fathom::kernels::cpu {

void add_weighted(HostContext& context, const AddWeighted& a) {
  const float w = a.weights.as<float>()[a.index];
  const auto update = a.accumulate ? simd().axpy : simd().scale;
  for_rows(context, a.y.rows, kRowChunk, [&](int64_t first, int64_t rows, Scratch&) {
    for (int64_t t = first; t < first + rows; ++t)
      update(a.y.cols, w, a.x.row<float>(t), a.y.row<float>(t));
  });
}

// Per chunk of rows, then over the chunks in order.
void weight_gradient(HostContext& context, const WeightGradient& a) {
  const SimdLoops& loops = simd();
  std::vector<double> partial(size_t(ceil_div(a.x.rows, kRowChunk)));
  for_rows(context, a.x.rows, kRowChunk, [&](int64_t first, int64_t rows, Scratch&) {
    double sum = 0;
    for (int64_t t = first; t < first + rows; ++t)
      sum += loops.dot_f64(a.x.cols, a.dy.row<float>(t), a.x.row<float>(t));
    partial[size_t(first / kRowChunk)] = sum;
  });
  double sum = 0;
  for (const double p : partial) sum += p;
  a.dweights.as<float>()[a.index] += float(sum);
}

void scale_columns(HostContext& context, const ScaleColumns& a) {
  const SimdLoops& loops = simd();
  for_rows(context, a.y.rows, kRowChunk, [&](int64_t first, int64_t rows, Scratch&) {
    for (int64_t t = first; t < first + rows; ++t)
      loops.multiply(a.y.cols, a.x.row<float>(t), a.gain.as<float>(), a.y.row<float>(t));
  });
}

void scale_columns_backward(HostContext& context, const ScaleColumnsBackward& a) {
  const SimdLoops& loops = simd();
  const int64_t C = a.dx.cols;
  std::vector<float> partial(size_t(ceil_div(a.dx.rows, kRowChunk) * C));
  for_rows(context, a.dx.rows, kRowChunk, [&](int64_t first, int64_t rows, Scratch&) {
    float* dgain = &partial[size_t(first / kRowChunk * C)];
    for (int64_t t = first; t < first + rows; ++t)
      loops.scale_gradient(C, a.dy.row<float>(t), a.x.row<float>(t), a.gain.as<float>(), dgain,
                           a.dx.row<float>(t));
  });
  for (size_t at = 0; at < partial.size(); at += size_t(C))
    loops.add(C, &partial[at], a.dgain.as<float>());
}

}  // namespace fathom::kernels::cpu
