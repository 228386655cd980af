// Eight floats at a time (AVX2 and FMA, the baseline of this device): exp, dropout factors, and a
// small matrix product for attention, where general libraries lose half their speed or more.
// Every element is computed by the same operations in the same order wherever it stands.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "core/kernels/dropout.h"

namespace fathom::kernels::cpu {

constexpr int64_t kLanes = 8;

// Lanes below `count` (0..8) set, for masked loads and stores.
[[nodiscard]] inline __m256i lane_mask(int64_t count) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(int(count)), lane);
}

[[nodiscard]] inline float horizontal_sum(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
[[nodiscard]] inline float horizontal_max(__m256 v) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

// exp(x), relative error under 2e-7; 0 below -87. NaN stays NaN.
// x = n ln 2 + r with |r| <= ln 2 / 2; exp(r) by its Taylor series up to r^7.
[[nodiscard]] inline __m256 exp8(__m256 x) {
  const __m256 small = _mm256_cmp_ps(x, _mm256_set1_ps(-87.0f), _CMP_LT_OQ);
  const __m256 clamped = _mm256_min_ps(_mm256_set1_ps(88.0f), x);  // keeps NaN: second operand
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(clamped, _mm256_set1_ps(1.44269504f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), clamped);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
  __m256 p = _mm256_set1_ps(1.0f / 5040);
  for (const float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(c));
  const __m256i power =
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
  return _mm256_andnot_ps(small, _mm256_mul_ps(p, _mm256_castsi256_ps(power)));
}

// factors[f] = 0 or keep_scale() for features f < count of one row; writes up to the next multiple
// of 64. Equal to Dropout::factor.
void dropout_factors(const Dropout& dropout, uint32_t position, uint32_t sentence, uint32_t plane,
                     int64_t count, float* factors);

// c (M, N) = a b, or += with `accumulate`.   a element (i, k) at a[i * a_row + k * a_col];
// b (K, N), c with rows b_row, c_row apart.
struct SmallProduct {
  int64_t M, N, K;
  const float* a;
  int64_t a_row, a_col;
  const float* b;
  int64_t b_row;
  float* c;
  int64_t c_row;
  bool accumulate = false;
};
void small_product(const SmallProduct& p);

}  // namespace fathom::kernels::cpu
