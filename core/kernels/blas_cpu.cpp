#include "core/kernels/blas_cpu.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include <cblas.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/kernels/simd_cpu.h"

namespace fathom::kernels::cpu {
namespace {

constexpr const char* kLibrary = "libopenblas.so.0";

struct Blas {
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&openblas_set_num_threads) set_num_threads = nullptr;
  decltype(&openblas_get_config) get_config = nullptr;
  decltype(&openblas_get_corename) get_corename = nullptr;
  // Of its buffers, in no header of its own.
  void* (*take_buffer)(int) = nullptr;
  void (*return_buffer)(void*) = nullptr;
  bool is_batch_invariant = false;
};

// One library a process: written once under the flag, read-only from then on.
Blas blas;
std::once_flag loaded;

template <class F>
void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  require<DeviceError>(function != nullptr, kLibrary, ": has no ", name);
}

void load() {
  require<DeviceError>(
      has_simd(), "device cpu: this processor has no AVX2 and FMA; use train.device reference");
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  setenv("OPENBLAS_CORETYPE", has_avx512 ? "SkylakeX" : "Haswell", 0);
  // None of its threads are started: they could not all be where memory is limited, and then it
  // waits for them indefinitely at exit.
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string cause = dlerror(), remedy = reservable_memory().remedy;
    fail<DeviceError>("device cpu: ", cause, "; install libopenblas0-pthread",
                      remedy.empty() ? "" : ", or ", remedy);
  }
  Blas b;
  find(library, "cblas_sgemm", b.sgemm);
  find(library, "openblas_set_num_threads", b.set_num_threads);
  find(library, "openblas_get_config", b.get_config);
  find(library, "openblas_get_corename", b.get_corename);
  find(library, "blas_memory_alloc", b.take_buffer);
  find(library, "blas_memory_free", b.return_buffer);
  b.set_num_threads(1);  // ours are in ThreadPool
  // Seen in 0.3.21 with equal rows in one call: SkylakeX gives them equal bits, but Haswell and Zen
  // add up rows 6 to 11 of every 12 in another order than rows 0 to 5.
  b.is_batch_invariant = std::strcmp(b.get_corename(), "SkylakeX") == 0;
  blas = b;
}

}  // namespace

void load_blas() { std::call_once(loaded, load); }

// All at the same time, so that each is another one; a buffer that is returned stays mapped.
void reserve_blas_buffers(int threads) {
  constexpr int kMost = 128;  // it has not many more
  constexpr size_t kBytes = 129 << 20;
  if (threads < 1) return;  // refused elsewhere
  const int count = std::min(threads, kMost);
  const size_t bytes = size_t(count) * kBytes;
  void* const room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) {
    const std::string remedy = reservable_memory().remedy;
    fail<DeviceError>("device cpu: OpenBLAS needs ", kBytes >> 20,
                      " MiB of address space for each of ", threads,
                      " threads, and has not got them: ", errno_text(ENOMEM),
                      "; ask for fewer threads (train.threads, or --threads of translate)",
                      remedy.empty() ? "" : ", or ", remedy);
  }
  munmap(room, bytes);
  std::vector<void*> buffers;
  for (int i = 0; i < count; ++i) buffers.push_back(blas.take_buffer(0));
  for (void* buffer : buffers) blas.return_buffer(buffer);
}

std::string blas_description() {
  load_blas();
  return std::string(blas.get_config()) + " " + blas.get_corename();
}

void sgemm(Transpose ta, Transpose tb, int64_t M, int64_t N, int64_t K, const float* a, int64_t lda,
           const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  const auto flag = [](Transpose t) { return t == Transpose::kYes ? CblasTrans : CblasNoTrans; };
  blas.sgemm(CblasRowMajor, flag(ta), flag(tb), blasint(M), blasint(N), blasint(K), 1, a,
             blasint(lda), b, blasint(ldb), beta, c, blasint(ldc));
}

namespace {

// One call of always the same shape, filled up with zero rows.
void zero_filled_tile(int64_t rows, int64_t N, int64_t K, const float* a, int64_t lda,
                      const float* b, int64_t ldb, float* c, int64_t ldc) {
  std::vector<float> x(size_t(kFixedTileRows * K)), y(size_t(kFixedTileRows * N));
  for (int64_t t = 0; t < rows; ++t)
    std::memcpy(&x[size_t(t * K)], a + t * lda, size_t(K) * sizeof(float));
  sgemm(Transpose::kNo, Transpose::kYes, kFixedTileRows, N, K, x.data(), K, b, ldb, 0, y.data(), N);
  for (int64_t t = 0; t < rows; ++t)
    std::memcpy(c + t * ldc, &y[size_t(t * N)], size_t(N) * sizeof(float));
}

// c^T = b a^T: every element is one chain of multiply-adds over K.
void transposed_tile(int64_t rows, int64_t N, int64_t K, const float* a, int64_t lda,
                     const float* b, int64_t ldb, float* c, int64_t ldc) {
  std::vector<float> x(size_t(K * rows)), y(size_t(N * rows));
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t k = 0; k < K; ++k) x[size_t(k * rows + t)] = a[t * lda + k];
  simd().set_product({y.data(), N, rows, rows}, {b, N, K, ldb}, {x.data(), K, rows, rows});
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t n = 0; n < N; ++n) c[t * ldc + n] = y[size_t(n * rows + t)];
}

}  // namespace

void rowwise_product_nt(int64_t M, int64_t N, int64_t K, const float* a, int64_t lda,
                        const float* b, int64_t ldb, float* c, int64_t ldc) {
  for (int64_t t = 0; t < M; t += kFixedTileRows) {
    const int64_t rows = std::min(kFixedTileRows, M - t);
    if (!blas.is_batch_invariant)
      transposed_tile(rows, N, K, a + t * lda, lda, b, ldb, c + t * ldc, ldc);
    else if (rows < kFixedTileRows)
      zero_filled_tile(rows, N, K, a + t * lda, lda, b, ldb, c + t * ldc, ldc);
    else
      sgemm(Transpose::kNo, Transpose::kYes, rows, N, K, a + t * lda, lda, b, ldb, 0, c + t * ldc,
            ldc);
  }
}

}  // namespace fathom::kernels::cpu
