#include <algorithm>
#include <chrono>

#include "core/kernels/devices.h"
#include "core/kernels/kernels_reference.h"

namespace fathom::kernels {
namespace {

// Of plain multiply-adds on one core: what loops like these can reach.
double measured_peak(int) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kRounds = 2'000'000;
  double best = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    volatile double start = 1;
    double x[8] = {};
    const Clock::time_point before = Clock::now();
    for (int64_t i = 0; i < kRounds; ++i)
      for (double& v : x) v = v * 0.5 + start;
    const double seconds = std::chrono::duration<double>(Clock::now() - before).count();
    double sum = 0;
    for (const double v : x) sum += v;
    start = sum;
    best = std::max(best, double(kRounds) * 8 * 2 / seconds);
  }
  return best;
}

HostTraits traits() {
  return {.name = "reference",
          .numerics = "reference-1",
          .compute_types = 1u << uint32_t(DType::kF32) | 1u << uint32_t(DType::kF64) |
                           1u << uint32_t(DType::kBF16),
          .peak_flops = measured_peak};
}

Status create(const DeviceOptions*, DeviceHandle** out) {
  const DeviceOptions one_thread;
  return create_host_device(traits, &one_thread, out);
}

DeviceTable table() {
  DeviceTable t = host_device_table();
  t.create = create;
  t.kernels = {.linear_forward = run_kernel<reference::linear_forward>,
               .linear_backward = run_kernel<reference::linear_backward>,
               .layer_norm_forward = run_kernel<reference::layer_norm_forward>,
               .layer_norm_backward = run_kernel<reference::layer_norm_backward>,
               .embedding_forward = run_kernel<reference::embedding_forward>,
               .embedding_backward = run_kernel<reference::embedding_backward>,
               .add_scaled = run_kernel<reference::add_scaled>,
               .fill = run_kernel<reference::fill>,
               .add_weighted = run_kernel<reference::add_weighted>,
               .weight_gradient = run_kernel<reference::weight_gradient>,
               .scale_columns = run_kernel<reference::scale_columns>,
               .scale_columns_backward = run_kernel<reference::scale_columns_backward>,
               .gelu_forward = run_kernel<reference::gelu_forward>,
               .gelu_backward = run_kernel<reference::gelu_backward>,
               .attention_forward = run_kernel<reference::attention_forward>,
               .attention_backward = run_kernel<reference::attention_backward>,
               .cross_entropy = run_kernel<reference::cross_entropy>,
               .append_rows = run_kernel<reference::append_rows>,
               .gather_rows = run_kernel<reference::gather_rows>,
               .top_k = run_kernel<reference::top_k>,
               .squared_norms = run_kernel<reference::squared_norms>,
               .count_values = run_kernel<reference::count_values>,
               .sum_chunks = run_kernel<reference::sum_chunks>,
               .sum_losses = run_kernel<reference::sum_losses>,
               .row_moments = run_kernel<reference::row_moments>,
               .step_control = run_kernel<reference::step_control>,
               .adam = run_kernel<reference::adam>,
               .update_norms = run_kernel<reference::update_norms>};
  return t;
}

}  // namespace

const DeviceTable& reference_device() {
  static const DeviceTable instance = table();
  return instance;
}

}  // namespace fathom::kernels
