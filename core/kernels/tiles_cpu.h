// How the cpu device cuts its loops and calls BLAS. Every product is one single-threaded library
// call on a tile whose size depends on the shape alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/kernels/blas_cpu.h"
#include "core/kernels/host_context.h"

namespace fathom::kernels::cpu {

constexpr int64_t kRowChunk = 64;  // rows of an element-wise or norm task

[[nodiscard]] constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
[[nodiscard]] constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// About eight tiles a matrix, so that up to eight threads find work, but none too small to pay.
[[nodiscard]] constexpr int64_t row_tile(int64_t rows) {
  return std::clamp<int64_t>(round_up(ceil_div(rows, 8), 32), 64, 512);
}
[[nodiscard]] constexpr int64_t weight_tile(int64_t rows) {
  return std::clamp<int64_t>(round_up(ceil_div(rows, 8), 16), 32, 512);
}

// c (M, N) = a b^T, a (M, K), b (N, K)
inline void product_nt(int64_t M, int64_t N, int64_t K, const float* a, int64_t lda, const float* b,
                       int64_t ldb, float* c, int64_t ldc) {
  sgemm(Transpose::kNo, Transpose::kYes, M, N, K, a, lda, b, ldb, 0, c, ldc);
}
// c (M, N) = a b, a (M, K), b (K, N)
inline void product_nn(int64_t M, int64_t N, int64_t K, const float* a, int64_t lda, const float* b,
                       int64_t ldb, float* c, int64_t ldc) {
  sgemm(Transpose::kNo, Transpose::kNo, M, N, K, a, lda, b, ldb, 0, c, ldc);
}
// c (M, N) += a^T b, a (K, M), b (K, N)
inline void add_product_tn(int64_t M, int64_t N, int64_t K, const float* a, int64_t lda,
                           const float* b, int64_t ldb, float* c, int64_t ldc) {
  sgemm(Transpose::kYes, Transpose::kNo, M, N, K, a, lda, b, ldb, 1, c, ldc);
}

// Calls f(first_row, row_count, scratch) for chunks of `chunk` rows.
template <class F>
void for_rows(HostContext& context, int64_t rows, int64_t chunk, const F& f) {
  context.pool().run(ceil_div(rows, chunk), [&](int64_t i, int worker) {
    f(i * chunk, std::min(chunk, rows - i * chunk), context.scratch(worker));
  });
}

}  // namespace fathom::kernels::cpu
