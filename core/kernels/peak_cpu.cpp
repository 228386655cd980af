#include "core/kernels/peak_cpu.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/thread.h"
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
  try {
    for (size_t i = 1; i < rates.size(); ++i)
      workers.push_back(
          start_thread("peak", "a thread", [&rate = rates[i]] { rate = best_rate(); }));
  } catch (const IoError&) {
    // It is an estimate: those that are missing count like the others.
  }
  rates[0] = best_rate();
  for (std::thread& worker : workers) worker.join();
  const double sum = std::reduce(rates.begin(), rates.end());
  return sum / double(1 + workers.size()) * threads;
}

}  // namespace fathom::kernels::cpu
