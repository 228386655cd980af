// The vector loops of the cpu device: compiled for AVX2 and for AVX-512, chosen when called.
//
// Both give the same bits. Elements are computed by the same operations wherever they stand, and a
// sum is that of sixteen partial sums (eight in f64), whatever the width of a vector: element i
// belongs to partial sum i mod 16.
//
// The loops are in core/kernels/simd/; nothing else of the program is compiled for more than
// x86-64. Pointers are to `count` elements, unless something else is said.
#pragma once

#include <cstdint>

#include "core/kernels/adam.h"
#include "core/kernels/dropout.h"
#include "core/kernels/view_cpu.h"

namespace fathom::kernels::cpu {

constexpr int64_t kFactorBlock = 64;   // dropout factors are made so many at a time
constexpr int64_t kScorePadding = 16;  // rows of scores have memory for a multiple of so many

// The elements of a row against its largest one.
struct RowSums {
  float largest = 0;  // of the elements
  float shifted = 0;  // sum of element - largest
  float exps = 0;     // sum of exp(element - largest)
};

struct MeanAndRstd {
  float mean = 0, rstd = 0;
};

struct ValueCounts {
  int64_t zeros = 0, nonfinite = 0;
};

struct SimdLoops {
  const char* name;  // of the instruction set

  void (*add)(int64_t count, const float* x, float* y);                       // y += x
  void (*axpy)(int64_t count, float a, const float* x, float* y);             // y += a x
  void (*scale)(int64_t count, float a, const float* x, float* y);            // y = a x
  void (*multiply)(int64_t count, const float* x, const float* g, float* y);  // y = x g
  // y = a x + b z
  void (*add_scaled)(int64_t count, float a, const float* x, float b, const float* z, float* y);
  // y += a x f
  void (*add_product)(int64_t count, float a, const float* x, const float* f, float* y);

  float (*dot)(int64_t count, const float* x, const float* y);
  double (*dot_f64)(int64_t count, const float* x, const float* y);  // added up in f64
  ValueCounts (*count_values)(int64_t count, const float* x);

  // factors[f] = 0 or keep_scale() for features f < count of one row; writes up to the next
  // multiple of kFactorBlock. Equal to Dropout::factor.
  void (*dropout_factors)(const Dropout& dropout, uint32_t position, uint32_t sentence,
                          uint32_t plane, int64_t count, float* factors);

  // c = a b, or c += a b. Steps of b and c are 1. Each element is one chain of multiply-adds.
  void (*set_product)(const View& c, const ConstView& a, const ConstView& b);
  void (*accumulate_product)(const View& c, const ConstView& a, const ConstView& b);

  // One row of a linear layer: y = factors relu(y + bias), where bias and factors may be absent.
  void (*finish_linear)(int64_t count, const float* bias, bool relu, const float* factors,
                        float* y);
  // dz = dy scale where y > 0, else 0
  void (*relu_gradient)(int64_t count, float scale, const float* dy, const float* y, float* dz);

  // The formulas of layer_norm.h for one row. s is x, or with `addend` x + addend, stored in `sum`.
  MeanAndRstd (*layer_norm)(int64_t count, float eps, const float* x, const float* addend,
                            const float* gain, const float* bias, float* sum, float* y);
  void (*layer_norm_gradient)(int64_t count, MeanAndRstd norm, const float* dy, const float* s,
                              const float* gain, float* ds, float* dgain, float* dbias);
  // dgain += dy x;  dx = dy gain
  void (*scale_gradient)(int64_t count, const float* dy, const float* x, const float* gain,
                         float* dgain, float* dx);

  // Scores in place: softmax of scale s over the first `count`, times `factors` if present; 0 from
  // there to `width`. Returns largest and exps of the scaled scores.
  RowSums (*softmax)(int64_t count, int64_t width, float scale, const float* factors, float* s);
  // Scores p and their derivative ds in place, over `width` elements, 0 from `count` on:
  //   p = exp(scale p - lse);  ds = scale p (ds factor - dy_y);  p = p factor
  void (*softmax_gradient)(int64_t count, int64_t width, float scale, float lse, float dy_y,
                           const float* factors, float* p, float* ds);

  RowSums (*row_sums)(int64_t count, const float* z);
  // z = weight (exp(z - lse) - elsewhere)
  void (*logit_gradient)(int64_t count, float lse, float weight, float elsewhere, float* z);

  void (*adam)(int64_t count, const Adam& a, float scale, const float* gradient, float* m, float* v,
               float* w);
  double (*update_norm)(int64_t count, const UpdateNorms& a, const float* w, const float* m,
                        const float* v);

  // Runs `rounds` rounds of independent multiply-adds; the sum of them all is of no interest.
  float (*multiply_add)(int64_t rounds);
  int64_t flops_per_round;
};

// Whether this processor has an instruction set that the loops are compiled for.
[[nodiscard]] bool has_simd();

// The loops for the best instruction set of this processor. Call once per kernel, not per row.
[[nodiscard]] const SimdLoops& simd();

}  // namespace fathom::kernels::cpu
