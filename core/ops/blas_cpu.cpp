#include "core/ops/blas_cpu.h"

#include <cblas.h>
#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

#include "core/base/error.h"

namespace fathom::core::cpu {
namespace {

constexpr const char* kLibrary = "libopenblas.so.0";

struct Blas {
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&openblas_set_num_threads) set_num_threads = nullptr;
  decltype(&openblas_get_config) get_config = nullptr;
  decltype(&openblas_get_corename) get_corename = nullptr;
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
  require<DeviceError>(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
                       "device cpu: this processor has no AVX2 and FMA; use train.device reference");
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  setenv("OPENBLAS_CORETYPE", has_avx512 ? "SkylakeX" : "Haswell", 0);
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  require<DeviceError>(library != nullptr, "device cpu: ", dlerror(),
                       "; install libopenblas0-pthread");
  Blas b;
  find(library, "cblas_sgemm", b.sgemm);
  find(library, "openblas_set_num_threads", b.set_num_threads);
  find(library, "openblas_get_config", b.get_config);
  find(library, "openblas_get_corename", b.get_corename);
  b.set_num_threads(1);  // threads are our pool's; see ThreadPool
  blas = b;
}

}  // namespace

void load_blas() { std::call_once(loaded, load); }

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

}  // namespace fathom::core::cpu
