#include <cmath>
#include <cstring>
#include <vector>

#include "core/kernels/kernels_cpu.h"
#include "core/kernels/simd_cpu.h"
#include "core/kernels/tiles_cpu.h"

namespace fathom::kernels::cpu {
namespace {

constexpr int64_t kQueryTile = 64;     // query rows whose scores are held at once
constexpr int64_t kTaskScores = 4096;  // sentences are grouped until a task has this many scores

struct Group {
  int64_t first, last;  // sentences
};

// Groups of neighbouring sentences of about equal work; a function of the lengths alone.
std::vector<Group> group_sentences(const Segments& queries, const Segments& keys) {
  std::vector<Group> groups;
  int64_t first = 0, work = 0;
  for (int64_t n = 0; n < queries.count; ++n) {
    work += int64_t{queries.length[n]} * keys.length[n];
    if (work < kTaskScores && n + 1 < queries.count) continue;
    groups.push_back({first, n + 1});
    first = n + 1;
    work = 0;
  }
  return groups;
}

// to (d, padded) = from^T, from (m, d); columns m .. padded are zero.
void transpose(const float* from, int64_t stride, int64_t m, int64_t d, int64_t padded, float* to) {
  for (int64_t c = 0; c < d; ++c) {
    for (int64_t j = 0; j < m; ++j) to[c * padded + j] = from[j * stride + c];
    for (int64_t j = m; j < padded; ++j) to[c * padded + j] = 0;
  }
}

// Softmax of the first `count` scores of a row (times `scale`); the rest, up to `padded`, becomes
// 0. Returns the log-sum-exp.
float softmax(float* s, int64_t count, int64_t padded, float scale) {
  float largest = -INFINITY;
  for (int64_t j = 0; j < count; ++j) largest = std::max(largest, s[j] * scale);
  const __m256 shift = _mm256_set1_ps(largest), factor = _mm256_set1_ps(scale);
  __m256 sum = _mm256_setzero_ps();
  for (int64_t j = 0; j < padded; j += kLanes) {
    const __m256 mask =
        _mm256_castsi256_ps(lane_mask(std::min(kLanes, std::max<int64_t>(count - j, 0))));
    const __m256 e = _mm256_and_ps(
        mask, exp8(_mm256_sub_ps(_mm256_mul_ps(_mm256_loadu_ps(s + j), factor), shift)));
    _mm256_storeu_ps(s + j, e);
    sum = _mm256_add_ps(sum, e);
  }
  const float denominator = horizontal_sum(sum);
  const __m256 inverse = _mm256_set1_ps(1 / denominator);
  for (int64_t j = 0; j < padded; j += kLanes)
    _mm256_storeu_ps(s + j, _mm256_mul_ps(_mm256_loadu_ps(s + j), inverse));
  return largest + std::log(denominator);
}

// exp(s scale - lse) for the first `count`, 0 after them.
void recompute(float* s, int64_t count, int64_t padded, float scale, float lse) {
  const __m256 shift = _mm256_set1_ps(lse), factor = _mm256_set1_ps(scale);
  for (int64_t j = 0; j < padded; j += kLanes) {
    const __m256 mask =
        _mm256_castsi256_ps(lane_mask(std::min(kLanes, std::max<int64_t>(count - j, 0))));
    _mm256_storeu_ps(
        s + j, _mm256_and_ps(mask, exp8(_mm256_sub_ps(_mm256_mul_ps(_mm256_loadu_ps(s + j), factor),
                                                      shift))));
  }
}

// The dropout factors of one query row.
float* row_factors(Scratch& s, const Dropout& dropout, int64_t row, int64_t head, int64_t count) {
  float* factors = s.floats(Scratch::kFactors, round_up(count, 64));
  dropout_factors(dropout, uint32_t(dropout.rows.position[row]),
                  uint32_t(dropout.rows.sentence[row]), uint32_t(head + 1), count, factors);
  return factors;
}

struct Head {
  int64_t query0, n, key0, m, column, d, head;
};

template <class F>
void for_each_head(HostContext& context, const Segments& queries, const Segments& keys,
                   int64_t heads, int64_t d, const F& f) {
  const std::vector<Group> groups = group_sentences(queries, keys);
  context.pool().run(int64_t(groups.size()) * heads, [&](int64_t task, int worker) {
    const Group& group = groups[size_t(task / heads)];
    const int64_t h = task % heads;
    for (int64_t s = group.first; s < group.last; ++s)
      f(context.scratch(worker),
        Head{queries.begin[s], queries.length[s], keys.begin[s], keys.length[s], h * d, d, h});
  });
}

void head_forward(Scratch& s, const AttentionForward& a, const Head& at) {
  const int64_t padded = round_up(at.m, kLanes);
  const float scale = 1 / std::sqrt(float(at.d));
  float* keys_t = s.floats(Scratch::kKeys, at.d * padded);
  float* p = s.floats(Scratch::kScores, kQueryTile * padded);
  transpose(a.k.row<float>(at.key0) + at.column, a.k.stride, at.m, at.d, padded, keys_t);
  for (int64_t i0 = 0; i0 < at.n; i0 += kQueryTile) {
    const int64_t rows = std::min(kQueryTile, at.n - i0);
    const int64_t seen = a.causal ? std::min(at.m, i0 + rows) : at.m;
    const int64_t width = round_up(seen, kLanes);
    small_product({.M = rows,
                   .N = width,
                   .K = at.d,
                   .a = a.q.row<float>(at.query0 + i0) + at.column,
                   .a_row = a.q.stride,
                   .a_col = 1,
                   .b = keys_t,
                   .b_row = padded,
                   .c = p,
                   .c_row = padded});
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t row = at.query0 + i0 + i;
      const int64_t count = a.causal ? std::min(at.m, i0 + i + 1) : at.m;
      const float lse = softmax(p + i * padded, count, width, scale);
      if (!a.lse.is_empty()) a.lse.row<float>(row)[at.head] = lse;
      if (!a.dropout.is_active()) continue;
      const float* factors = row_factors(s, a.dropout, row, at.head, count);
      for (int64_t j = 0; j < count; ++j) p[i * padded + j] *= factors[j];
    }
    small_product({.M = rows,
                   .N = at.d,
                   .K = seen,
                   .a = p,
                   .a_row = padded,
                   .a_col = 1,
                   .b = a.v.row<float>(at.key0) + at.column,
                   .b_row = a.v.stride,
                   .c = a.y.row<float>(at.query0 + i0) + at.column,
                   .c_row = a.y.stride});
  }
}

void zero_rows(const Matrix& t, int64_t first, int64_t rows, int64_t column, int64_t d) {
  for (int64_t r = first; r < first + rows; ++r)
    std::memset(t.row<float>(r) + column, 0, size_t(d) * sizeof(float));
}

// The formulas stand in attention_reference.cpp.
void head_backward(Scratch& s, const AttentionBackward& a, const Head& at) {
  const int64_t padded = round_up(at.m, kLanes);
  const float scale = 1 / std::sqrt(float(at.d));
  float* keys_t = s.floats(Scratch::kKeys, at.d * padded);
  float* values_t = s.floats(Scratch::kValues, at.d * padded);
  float* p = s.floats(Scratch::kScores, kQueryTile * padded);
  float* ds = s.floats(Scratch::kDerivative, kQueryTile * padded);
  transpose(a.k.row<float>(at.key0) + at.column, a.k.stride, at.m, at.d, padded, keys_t);
  transpose(a.v.row<float>(at.key0) + at.column, a.v.stride, at.m, at.d, padded, values_t);
  zero_rows(a.dk, at.key0, at.m, at.column, at.d);
  zero_rows(a.dv, at.key0, at.m, at.column, at.d);
  for (int64_t i0 = 0; i0 < at.n; i0 += kQueryTile) {
    const int64_t rows = std::min(kQueryTile, at.n - i0);
    const int64_t seen = a.causal ? std::min(at.m, i0 + rows) : at.m;
    const int64_t width = round_up(seen, kLanes);
    const float* q = a.q.row<float>(at.query0 + i0) + at.column;
    const float* dy = a.dy.row<float>(at.query0 + i0) + at.column;
    small_product({.M = rows,
                   .N = width,
                   .K = at.d,
                   .a = q,
                   .a_row = a.q.stride,
                   .a_col = 1,
                   .b = keys_t,
                   .b_row = padded,
                   .c = p,
                   .c_row = padded});
    small_product({.M = rows,
                   .N = width,
                   .K = at.d,
                   .a = dy,
                   .a_row = a.dy.stride,
                   .a_col = 1,
                   .b = values_t,
                   .b_row = padded,
                   .c = ds,
                   .c_row = padded});
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t row = at.query0 + i0 + i;
      const int64_t count = a.causal ? std::min(at.m, i0 + i + 1) : at.m;
      float* __restrict pi = p + i * padded;
      float* __restrict di = ds + i * padded;
      recompute(pi, count, width, scale, a.lse.row<float>(row)[at.head]);
      const float* y = a.y.row<float>(row) + at.column;
      const float* dyi = dy + i * a.dy.stride;
      float dy_y = 0;
#pragma omp simd reduction(+ : dy_y)
      for (int64_t c = 0; c < at.d; ++c) dy_y += dyi[c] * y[c];
      if (a.dropout.is_active()) {
        const float* __restrict factors = row_factors(s, a.dropout, row, at.head, count);
        for (int64_t j = 0; j < count; ++j) {
          di[j] = pi[j] * (di[j] * factors[j] - dy_y) * scale;
          pi[j] *= factors[j];
        }
        for (int64_t j = count; j < width; ++j) di[j] = 0;
      } else {
        for (int64_t j = 0; j < width; ++j) di[j] = pi[j] * (di[j] - dy_y) * scale;
      }
    }
    small_product({.M = rows,
                   .N = at.d,
                   .K = seen,
                   .a = ds,
                   .a_row = padded,
                   .a_col = 1,
                   .b = a.k.row<float>(at.key0) + at.column,
                   .b_row = a.k.stride,
                   .c = a.dq.row<float>(at.query0 + i0) + at.column,
                   .c_row = a.dq.stride});
    small_product({.M = seen,
                   .N = at.d,
                   .K = rows,
                   .a = ds,
                   .a_row = 1,
                   .a_col = padded,
                   .b = q,
                   .b_row = a.q.stride,
                   .c = a.dk.row<float>(at.key0) + at.column,
                   .c_row = a.dk.stride,
                   .accumulate = true});
    small_product({.M = seen,
                   .N = at.d,
                   .K = rows,
                   .a = p,
                   .a_row = 1,
                   .a_col = padded,
                   .b = dy,
                   .b_row = a.dy.stride,
                   .c = a.dv.row<float>(at.key0) + at.column,
                   .c_row = a.dv.stride,
                   .accumulate = true});
  }
}

}  // namespace

void attention_forward(HostContext& context, const AttentionForward& a) {
  for_each_head(context, a.queries, a.keys, a.heads, a.y.cols / a.heads,
                [&](Scratch& s, const Head& at) { head_forward(s, a, at); });
}

void attention_backward(HostContext& context, const AttentionBackward& a) {
  for_each_head(context, a.queries, a.keys, a.heads, a.dy.cols / a.heads,
                [&](Scratch& s, const Head& at) { head_backward(s, a, at); });
}

}  // namespace fathom::kernels::cpu
