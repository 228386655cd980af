#include "core/kernels/simd_cpu.h"

#include <algorithm>

namespace fathom::kernels::cpu {
namespace {

struct Halves {
  __m256i high, low;
};

// 32 x 32 -> 64 bits in every lane.
inline Halves multiply(__m256i a, __m256i m) {
  const __m256i even = _mm256_mul_epu32(a, m);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), m);
  return {_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA),
          _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA)};
}

// Philox-4x32-10 for eight neighbouring blocks; see core/base/philox.h.
inline void philox8(PhiloxKey key, __m256i c[4]) {
  const __m256i m0 = _mm256_set1_epi32(int(0xD2511F53u)), m1 = _mm256_set1_epi32(int(0xCD9E8D57u));
  for (int round = 0; round < 10; ++round) {
    const Halves p0 = multiply(c[0], m0), p1 = multiply(c[2], m1);
    const __m256i k0 = _mm256_set1_epi32(int(key[0])), k1 = _mm256_set1_epi32(int(key[1]));
    c[0] = _mm256_xor_si256(_mm256_xor_si256(p1.high, c[1]), k0);
    c[2] = _mm256_xor_si256(_mm256_xor_si256(p0.high, c[3]), k1);
    c[1] = p1.low;
    c[3] = p0.low;
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
}

// Rows x 8 v columns of c, kept in registers over all of K. The last vector may be partial.
template <int kRows, int kVectors, bool kMasked>
inline void block(const SmallProduct& p, int64_t i, int64_t j, __m256i mask) {
  __m256 sum[kRows][kVectors];
  float* c = p.c + i * p.c_row + j;
  const auto load = [&](const float* from, int v) {
    return kMasked && v == kVectors - 1 ? _mm256_maskload_ps(from, mask) : _mm256_loadu_ps(from);
  };
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v)
      sum[r][v] = p.accumulate ? load(c + r * p.c_row + v * kLanes, v) : _mm256_setzero_ps();
  const float* a = p.a + i * p.a_row;
  const float* b = p.b + j;
  for (int64_t k = 0; k < p.K; ++k, a += p.a_col, b += p.b_row) {
    __m256 bv[kVectors];
    for (int v = 0; v < kVectors; ++v) bv[v] = load(b + v * kLanes, v);
    for (int r = 0; r < kRows; ++r) {
      const __m256 av = _mm256_broadcast_ss(a + r * p.a_row);
      for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm256_fmadd_ps(av, bv[v], sum[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) {
      float* to = c + r * p.c_row + v * kLanes;
      if (kMasked && v == kVectors - 1)
        _mm256_maskstore_ps(to, mask, sum[r][v]);
      else
        _mm256_storeu_ps(to, sum[r][v]);
    }
}

template <int kVectors, bool kMasked>
inline void columns(const SmallProduct& p, int64_t j, __m256i mask) {
  int64_t i = 0;
  for (; i + 4 <= p.M; i += 4) block<4, kVectors, kMasked>(p, i, j, mask);
  for (; i < p.M; ++i) block<1, kVectors, kMasked>(p, i, j, mask);
}

}  // namespace

void dropout_factors(const Dropout& dropout, uint32_t position, uint32_t sentence, uint32_t plane,
                     int64_t count, float* factors) {
  const __m256 scale = _mm256_set1_ps(float(dropout.keep_scale()));
  const __m128i last_dropped = _mm_set1_epi16(short(dropout.threshold - 1));
  for (int64_t f = 0; f < count; f += 64) {
    __m256i c[4] = {
        _mm256_add_epi32(_mm256_set1_epi32(int(f / 8)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
        _mm256_set1_epi32(int(position)), _mm256_set1_epi32(int(sentence)),
        _mm256_set1_epi32(int(plane))};
    philox8({dropout.key[0], dropout.key[1]}, c);
    // Words of a block side by side: rows[r] holds block r in its low and block r + 4 in its high
    // half.
    const __m256i a = _mm256_unpacklo_epi32(c[0], c[1]), b = _mm256_unpackhi_epi32(c[0], c[1]);
    const __m256i d = _mm256_unpacklo_epi32(c[2], c[3]), e = _mm256_unpackhi_epi32(c[2], c[3]);
    const __m256i rows[4] = {_mm256_unpacklo_epi64(a, d), _mm256_unpackhi_epi64(a, d),
                             _mm256_unpacklo_epi64(b, e), _mm256_unpackhi_epi64(b, e)};
    const auto store = [&](__m128i draws, int64_t at) {
      // draw <= threshold - 1, unsigned
      const __m128i dropped = _mm_cmpeq_epi16(_mm_min_epu16(draws, last_dropped), draws);
      const __m256 mask = _mm256_castsi256_ps(_mm256_cvtepi16_epi32(dropped));
      _mm256_storeu_ps(factors + f + at, _mm256_andnot_ps(mask, scale));
    };
    for (int r = 0; r < 4; ++r) {
      store(_mm256_castsi256_si128(rows[r]), 8 * r);
      store(_mm256_extracti128_si256(rows[r], 1), 8 * (r + 4));
    }
  }
}

void small_product(const SmallProduct& p) {
  int64_t j = 0;
  for (; j + 2 * kLanes <= p.N; j += 2 * kLanes) columns<2, false>(p, j, _mm256_setzero_si256());
  const int64_t rest = p.N - j;
  if (rest == 0) return;
  if (rest > kLanes)
    columns<2, true>(p, j, lane_mask(rest - kLanes));
  else
    columns<1, true>(p, j, lane_mask(rest));
}

}  // namespace fathom::kernels::cpu
