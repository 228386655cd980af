#include "core/autograd/parameter.h"

#include <cstdlib>
#include <cstring>

namespace fathom::autograd {
namespace {

// Every parameter begins on a cache line, so that kernels see aligned rows.
constexpr int64_t kAlignElements = 16;

Tensor slice(const Tensor& flat, const Parameter& p, int64_t rows, int64_t cols) {
  return Tensor(static_cast<std::byte*>(flat.raw()) + p.offset * size_of(flat.dtype()), rows, cols,
                flat.dtype());
}

}  // namespace

Tensor allocate_flat(int64_t count, DType dtype) {
  const size_t bytes = size_t((count * size_of(dtype) + 63) / 64 * 64);
  void* data = std::aligned_alloc(64, bytes == 0 ? 64 : bytes);
  require<DeviceError>(data != nullptr, "cannot allocate ", bytes >> 20, " MiB for parameters");
  std::memset(data, 0, bytes);
  return Tensor(data, 1, count, dtype, std::shared_ptr<void>(data, std::free));
}

Parameter& ParameterStore::add(std::string name, Role role, std::vector<int64_t> shape,
                               int64_t fan_in, int64_t fan_out) {
  require(weights_.is_empty(), "parameter ", name, ": declared after the store was frozen");
  require(shape.size() == 1 || shape.size() == 2, "parameter ", name, ": needs one or two extents");
  for (const auto& p : parameters_)
    require(p->name != name, "parameter ", name, ": declared twice");
  parameters_.push_back(std::make_unique<Parameter>(Parameter{.name = std::move(name),
                                                              .role = role,
                                                              .shape = std::move(shape),
                                                              .value = {},
                                                              .grad = {},
                                                              .fan_in = fan_in,
                                                              .fan_out = fan_out}));
  return *parameters_.back();
}

int64_t ParameterStore::padded_count(const Parameter& p) {
  int64_t count = 1;
  for (const int64_t extent : p.shape) count *= extent;
  return (count + kAlignElements - 1) / kAlignElements * kAlignElements;
}

void ParameterStore::freeze() {
  int64_t offset = 0;
  for (auto p = parameters_.rbegin(); p != parameters_.rend(); ++p) {
    (*p)->offset = offset;
    offset += padded_count(**p);
  }
  size_ = offset;
  weights_ = allocate_flat(size_, dtype_);
  for (const auto& p : parameters_) {
    const int64_t rows = p->shape.size() == 2 ? p->shape[0] : 1;
    p->value = slice(weights_, *p, rows, p->shape.back());
  }
}

void ParameterStore::bind_gradients(const Tensor& flat) {
  require(flat.numel() == size_ && flat.dtype() == dtype_, "bind_gradients: got ", flat,
          ", expected ", size_, " elements of ", to_string(dtype_));
  for (const auto& p : parameters_) p->grad = slice(flat, *p, p->value.rows(), p->value.cols());
}

Parameter& ParameterStore::find(const std::string& name) const {
  for (const auto& p : parameters_)
    if (p->name == name) return *p;
  fail("parameter ", name, ": the model has none of this name");
}

}  // namespace fathom::autograd
