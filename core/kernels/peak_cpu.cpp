#include "core/kernels/peak_cpu.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <immintrin.h>

namespace fathom::kernels::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kRounds = 1'000'000;
constexpr int kChains = 12;  // independent ones hide the latency of each
constexpr int kRepeats = 5;  // the best counts: the first ones wake the units up

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The sum leaves through `sink`, so that the chains are not dead code.
__attribute__((target("avx2,fma"))) double rate_avx2(float& sink) {
  __m256 x[kChains];
  const __m256 one = _mm256_set1_ps(1.0f);
  for (__m256& v : x) v = one;
  const Clock::time_point start = Clock::now();
  for (int64_t i = 0; i < kRounds; ++i)
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) x[k] = _mm256_fmadd_ps(x[k], one, one);
  const double seconds = seconds_since(start);
  for (const __m256& v : x) sink += _mm256_cvtss_f32(v);
  return double(kRounds) * kChains * 8 * 2 / seconds;
}

__attribute__((target("avx512f"))) double rate_avx512(float& sink) {
  __m512 x[kChains];
  const __m512 one = _mm512_set1_ps(1.0f);
  for (__m512& v : x) v = one;
  const Clock::time_point start = Clock::now();
  for (int64_t i = 0; i < kRounds; ++i)
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) x[k] = _mm512_fmadd_ps(x[k], one, one);
  const double seconds = seconds_since(start);
  for (const __m512& v : x) sink += _mm512_cvtss_f32(v);
  return double(kRounds) * kChains * 16 * 2 / seconds;
}

double best_rate() {
  float sum = 0;
  double best = 0;
  for (int i = 0; i < kRepeats; ++i)
    best = std::max(best, __builtin_cpu_supports("avx512f") ? rate_avx512(sum) : rate_avx2(sum));
  volatile float sink = sum;
  static_cast<void>(sink);
  return best;
}

}  // namespace

double measured_peak_flops(int threads) {
  std::vector<double> rates(size_t(threads), 0.0);
  std::vector<std::thread> workers;
  for (double& rate : rates) workers.emplace_back([&rate] { rate = best_rate(); });
  double sum = 0;
  for (size_t i = 0; i < workers.size(); ++i) {
    workers[i].join();
    sum += rates[i];
  }
  return sum;
}

}  // namespace fathom::kernels::cpu
