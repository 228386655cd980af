// All vector loops, for one instruction set. Only simd_cpu.cpp includes this, once for each of
// them: so there is no #pragma once here nor in the other files of this folder.
#include <hwy/highway.h>

#include "core/kernels/simd/vectors-inl.h"
#include "core/kernels/simd_cpu.h"
// These use the vectors.
#include "core/kernels/simd/adam-inl.h"
#include "core/kernels/simd/attention-inl.h"
#include "core/kernels/simd/cross_entropy-inl.h"
#include "core/kernels/simd/dropout-inl.h"
#include "core/kernels/simd/elementwise-inl.h"
#include "core/kernels/simd/layer_norm-inl.h"
#include "core/kernels/simd/peak-inl.h"
#include "core/kernels/simd/product-inl.h"
#include "core/kernels/simd/statistics-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fathom::kernels::cpu::HWY_NAMESPACE {
namespace {

inline const SimdLoops& loops() {
  static constexpr SimdLoops kLoops = {.name = HWY_TARGET == HWY_AVX2 ? "AVX2" : "AVX-512",
                                       .add = add,
                                       .axpy = axpy,
                                       .scale = scale,
                                       .multiply = multiply,
                                       .add_scaled = add_scaled,
                                       .add_product = add_product,
                                       .dot = dot,
                                       .dot_f64 = dot_f64,
                                       .count_values = count_values,
                                       .dropout_factors = dropout_factors,
                                       .set_product = set_product,
                                       .accumulate_product = accumulate_product,
                                       .finish_linear = finish_linear,
                                       .relu_gradient = relu_gradient,
                                       .layer_norm = layer_norm,
                                       .layer_norm_gradient = layer_norm_gradient,
                                       .scale_gradient = scale_gradient,
                                       .softmax = softmax,
                                       .softmax_gradient = softmax_gradient,
                                       .row_sums = row_sums,
                                       .logit_gradient = logit_gradient,
                                       .adam = adam,
                                       .update_norm = update_norm,
                                       .multiply_add = multiply_add,
                                       .flops_per_round = kFlopsPerRound};
  return kLoops;
}

}  // namespace
}  // namespace fathom::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
