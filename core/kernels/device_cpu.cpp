#include <mutex>

#include "core/base/error.h"
#include "core/kernels/blas_cpu.h"
#include "core/kernels/devices.h"
#include "core/kernels/kernels_cpu.h"
#include "core/kernels/kernels_reference.h"
#include "core/kernels/peak_cpu.h"
#include "core/kernels/simd_cpu.h"

namespace fathom::kernels {
namespace {

std::mutex mutex;
std::string creation_error;

HostTraits traits() {
  return {.name = "cpu",
          .numerics = join("tiles-2 ", cpu::simd().name, " ", cpu::blas_description()),
          .compute_types = 1u << uint32_t(DType::kF32),
          .peak_flops = cpu::measured_peak_flops};
}

Status create(const DeviceOptions* options, DeviceHandle** out) {
  try {
    cpu::load_blas();
    cpu::reserve_blas_buffers(options->threads);
    return create_host_device(traits, options, out);
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex);
    creation_error = error.what();
    return kFailed;
  }
}

const char* last_error(DeviceHandle* device) {
  if (device != nullptr) return host_device_table().last_error(device);
  const std::lock_guard lock(mutex);
  return creation_error.c_str();
}

DeviceTable table() {
  DeviceTable t = host_device_table();
  t.create = create;
  t.last_error = last_error;
  t.kernels = {.linear_forward = run_kernel<cpu::linear_forward>,
               .linear_backward = run_kernel<cpu::linear_backward>,
               .layer_norm_forward = run_kernel<cpu::layer_norm_forward>,
               .layer_norm_backward = run_kernel<cpu::layer_norm_backward>,
               .embedding_forward = run_kernel<cpu::embedding_forward>,
               .embedding_backward = run_kernel<cpu::embedding_backward>,
               .add_scaled = run_kernel<cpu::add_scaled>,
               .fill = run_kernel<cpu::fill>,
               .add_weighted = run_kernel<cpu::add_weighted>,
               .weight_gradient = run_kernel<cpu::weight_gradient>,
               .scale_columns = run_kernel<cpu::scale_columns>,
               .scale_columns_backward = run_kernel<cpu::scale_columns_backward>,
               .gelu_forward = run_kernel<cpu::gelu_forward>,
               .gelu_backward = run_kernel<cpu::gelu_backward>,
               .attention_forward = run_kernel<cpu::attention_forward>,
               .attention_backward = run_kernel<cpu::attention_backward>,
               .cross_entropy = run_kernel<cpu::cross_entropy>,
               .append_rows = run_kernel<reference::append_rows>,
               .gather_rows = run_kernel<reference::gather_rows>,
               .top_k = run_kernel<reference::top_k>,
               .squared_norms = run_kernel<cpu::squared_norms>,
               .count_values = run_kernel<cpu::count_values>,
               .sum_chunks = run_kernel<reference::sum_chunks>,
               .sum_losses = run_kernel<reference::sum_losses>,
               .row_moments = run_kernel<reference::row_moments>,
               .step_control = run_kernel<reference::step_control>,
               .adam = run_kernel<cpu::adam>,
               .update_norms = run_kernel<cpu::update_norms>};
  return t;
}

}  // namespace

const DeviceTable& cpu_device() {
  static const DeviceTable instance = table();
  return instance;
}

}  // namespace fathom::kernels
