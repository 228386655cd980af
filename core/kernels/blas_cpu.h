// OpenBLAS, opened when the cpu device is made. It chooses its kernels while it is being loaded,
// and releases older than a processor choose badly (one from 2022 runs SSE3 kernels on a 2024
// Xeon), so the choice is made here, by instruction set, unless OPENBLAS_CORETYPE says otherwise.
#pragma once

#include <cstdint>
#include <string>

namespace fathom::kernels::cpu {

// Loads the library; further calls do nothing. Throws DeviceError when it is missing, or when the
// processor has no AVX2 and FMA.
void load_blas();

// Takes the memory that the library needs for products on so many threads at once. It would look
// for it at the first products, for ever where there is none. DeviceError when it cannot be had.
void reserve_blas_buffers(int threads);

// Names the library's version and kernels: what decides the bits of a product.
[[nodiscard]] std::string blas_description();

// c (M, N) = alpha a b + beta c with either operand transposed, row-major; single-threaded. May be
// called from any thread once load_blas() has returned.
enum class Transpose { kNo, kYes };
void sgemm(Transpose ta, Transpose tb, int64_t M, int64_t N, int64_t K, const float* a, int64_t lda,
           const float* b, int64_t ldb, float beta, float* c, int64_t ldc);

// c (M, N) = a b^T, a (M, K), b (N, K), where the bits of a row depend on that row alone: neither
// on M nor on its place. For evaluation and decoding (`batch_invariant`).
constexpr int64_t kFixedTileRows = 64;  // best called with so many rows
void rowwise_product_nt(int64_t M, int64_t N, int64_t K, const float* a, int64_t lda,
                        const float* b, int64_t ldb, float* c, int64_t ldc);

}  // namespace fathom::kernels::cpu
