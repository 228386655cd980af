// Where kernels run: `reference` (plain loops in f32 and f64, the specification) or `cpu` (f32,
// threaded, BLAS). A device owns its kernel table, its threads and its arena; nothing is global.
#pragma once

#include <memory>
#include <string>

#include "core/base/thread_pool.h"
#include "core/kernels/kernels.h"
#include "core/tensor/arena.h"

namespace fathom::tensor {

class Device {
 public:
  Device(std::string name, kernels::Kernels kernels, int threads)
      : name_(std::move(name)), kernels_(kernels), pool_(threads) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const kernels::Kernels& kernels() const { return kernels_; }
  [[nodiscard]] ThreadPool& pool() { return pool_; }
  [[nodiscard]] Arena& arena() { return arena_; }

  // Throws InvalidArgument when the device has no kernels for `dtype`.
  void check_supports(DType dtype) const {
    require(dtype == DType::kF32 || name_ == "reference", "device ", name_,
            ": computes in f32, not ", to_string(dtype),
            "; train.precision fp64 needs train.device reference");
  }

 private:
  std::string name_;
  kernels::Kernels kernels_;
  ThreadPool pool_;
  Arena arena_;
};

// One thread, f32 and f64.
[[nodiscard]] std::unique_ptr<Device> make_reference_device();

// f32 only; results do not depend on `threads`.
[[nodiscard]] std::unique_ptr<Device> make_cpu_device(int threads);

// "auto" is cpu; throws InvalidArgument on an unknown name, or on cuda, which is not built.
[[nodiscard]] std::unique_ptr<Device> make_device(const std::string& name, int threads);

// Names the instruction set and the library that decide the bits of the cpu device's products.
[[nodiscard]] std::string cpu_numerics_fingerprint();

}  // namespace fathom::tensor

namespace fathom {
using tensor::Device;
}  // namespace fathom
