#include "core/kernels/peak_cpu.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/kernels/simd_cpu.h"

namespace fathom::kernels::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kRounds = 1'000'000;
constexpr int kRepeats = 5;  // the best counts: the first ones wake the units up

// The sum leaves through `sink`, so that the multiply-adds are not dead code.
double rate(const SimdLoops& loops, float& sink) {
  const Clock::time_point start = Clock::now();
  sink += loops.multiply_add(kRounds);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return double(kRounds * loops.flops_per_round) / seconds;
}

double best_rate() {
  float sum = 0;
  double best = 0;
  for (int i = 0; i < kRepeats; ++i) best = std::max(best, rate(simd(), sum));
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
