#include "core/autograd/parameter.h"

#include <algorithm>

namespace fathom::autograd {
namespace {

// Every parameter begins on a cache line, so that kernels see aligned rows.
constexpr int64_t kAlignElements = kernels::kChunkUnit;

Tensor slice(const Tensor& flat, const Parameter& p, int64_t rows, int64_t cols) {
  return flat.columns(p.offset, rows * cols).reshaped(rows, cols);
}

}  // namespace

ParameterStore::ParameterStore(Device& device, DType dtype) : device_(device), dtype_(dtype) {
  device.check_supports(dtype);
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
  weights_ = device_.compute().allocate(1, size_, wide());
  if (dtype_ != wide()) working_ = device_.compute().allocate(1, size_, dtype_);
  for (const auto& p : parameters_) {
    const int64_t rows = p->is_matrix() ? p->shape[0] : 1;
    const bool is_working = p->is_matrix() && !working_.is_empty();
    p->value = slice(is_working ? working_ : weights_, *p, rows, p->shape.back());
  }
  make_chunks();
}

void ParameterStore::make_chunks() {
  std::vector<int32_t> rows;
  for (size_t p = 0; p < parameters_.size(); ++p) {
    const Parameter& parameter = *parameters_[p];
    for (int64_t at = 0; at < parameter.numel(); at += kernels::kChunkElements) {
      const kernels::Chunk& chunk = chunk_table_.emplace_back(kernels::Chunk{
          .first = parameter.offset + at,
          .count = std::min(int64_t{kernels::kChunkElements}, parameter.numel() - at),
          .parameter = int64_t(p)});
      rows.push_back(int32_t(chunk.first / kernels::kChunkUnit));
      rows.push_back(int32_t(chunk.count));
      rows.push_back(int32_t(p));
    }
  }
  chunks_ = device_.compute().allocate(int64_t(rows.size()) / 3, 3, DType::kI32);
  device_.compute().upload(chunks_, std::span<const int32_t>(rows));
}

void ParameterStore::bind_gradients(const Tensor& flat) {
  require(flat.numel() == size_ && flat.dtype() == wide(), "bind_gradients: got ", flat,
          ", expected ", size_, " elements of ", to_string(wide()));
  for (const auto& p : parameters_) p->grad = slice(flat, *p, p->value.rows(), p->value.cols());
}

void ParameterStore::refresh_working() {
  if (!working_.is_empty())
    device_.compute().run(&kernels::Kernels::add_scaled,
                          {.x = weights_, .z = {}, .y = working_, .a = 1, .b = 0});
}

int64_t ParameterStore::vectors_before(int64_t element) const {
  int64_t sum = 0;
  for (const auto& p : parameters_)
    if (!p->is_matrix()) sum += std::clamp(element - p->offset, int64_t{0}, padded_count(*p));
  return sum;
}

void ParameterStore::keep_masters(const std::vector<Slice>& ranges) {
  if (working_.is_empty()) return;
  require(has_whole_masters_, "parameters: the masters of slices are kept once");
  Context& context = device_.compute();
  int64_t count = 0;
  for (const Slice& range : ranges) count += range.count;
  const Tensor masters = context.allocate(1, count, wide());
  int64_t at = 0;
  for (const Slice& range : ranges) {
    context.copy(masters.columns(at, range.count), weights_.columns(range.offset, range.count));
    at += range.count;
  }
  vectors_ = context.allocate(1, vectors_before(size_), wide());
  for (const auto& p : parameters_) {
    if (p->is_matrix()) continue;
    const Tensor own = vectors_.columns(vectors_before(p->offset), padded_count(*p));
    context.copy(own, weights_.columns(p->offset, padded_count(*p)));
    p->value = own.columns(0, p->numel());
  }
  weights_ = masters;
  has_whole_masters_ = false;
}

Parameter& ParameterStore::find(const std::string& name) const {
  for (const auto& p : parameters_)
    if (p->name == name) return *p;
  fail("parameter ", name, ": the model has none of this name");
}

}  // namespace fathom::autograd
