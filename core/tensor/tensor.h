// A matrix (rows, cols) somewhere in memory: activations are (T, C), T packed real tokens, never
// padding. A tensor is a view; what owns the memory is the arena (activations), a block of its top
// end (gradients: `owner` is set) or a parameter store. Copying a tensor copies no element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>

#include "core/base/error.h"

namespace fathom::tensor {

enum class DType { kF32, kF64 };

[[nodiscard]] constexpr int64_t size_of(DType dtype) { return dtype == DType::kF32 ? 4 : 8; }
[[nodiscard]] constexpr const char* to_string(DType dtype) {
  return dtype == DType::kF32 ? "f32" : "f64";
}

template <class T>
[[nodiscard]] constexpr DType dtype_of() {
  return sizeof(T) == 4 ? DType::kF32 : DType::kF64;
}

class Tensor {
 public:
  Tensor() = default;
  Tensor(void* data, int64_t rows, int64_t cols, DType dtype, std::shared_ptr<void> owner = {})
      : data_(data),
        rows_(rows),
        cols_(cols),
        stride_(cols),
        dtype_(dtype),
        owner_(std::move(owner)) {}

  [[nodiscard]] bool is_empty() const { return data_ == nullptr; }
  [[nodiscard]] int64_t rows() const { return rows_; }
  [[nodiscard]] int64_t cols() const { return cols_; }
  [[nodiscard]] int64_t stride() const { return stride_; }  // elements from row to row
  [[nodiscard]] int64_t numel() const { return rows_ * cols_; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] bool is_contiguous() const { return stride_ == cols_ || rows_ <= 1; }
  [[nodiscard]] void* raw() const { return data_; }

  template <class T>
  [[nodiscard]] T* data() const {
    return static_cast<T*>(data_);
  }
  template <class T>
  [[nodiscard]] T* row(int64_t r) const {
    return static_cast<T*>(data_) + r * stride_;
  }

  // Columns [first, first + count) of every row, rows [first, first + count) with every column.
  [[nodiscard]] Tensor columns(int64_t first, int64_t count) const {
    Tensor t = *this;
    t.data_ = static_cast<std::byte*>(data_) + first * size_of(dtype_);
    t.cols_ = count;
    return t;
  }
  [[nodiscard]] Tensor row_range(int64_t first, int64_t count) const {
    Tensor t = *this;
    t.data_ = static_cast<std::byte*>(data_) + first * stride_ * size_of(dtype_);
    t.rows_ = count;
    return t;
  }
  // The same elements, contiguous, as (rows, cols).
  [[nodiscard]] Tensor reshaped(int64_t rows, int64_t cols) const {
    require(is_contiguous() && rows * cols == numel(), "reshape: (", rows_, ", ", cols_, ") to (",
            rows, ", ", cols, ")");
    Tensor t = *this;
    t.rows_ = rows;
    t.cols_ = t.stride_ = cols;
    return t;
  }

  [[nodiscard]] bool same_shape(const Tensor& other) const {
    return rows_ == other.rows_ && cols_ == other.cols_;
  }
  // True when this handle is the only one on an owned block: it may be written in place.
  [[nodiscard]] bool is_sole_owner() const { return owner_ && owner_.use_count() == 1; }

 private:
  void* data_ = nullptr;
  int64_t rows_ = 0, cols_ = 0, stride_ = 0;
  DType dtype_ = DType::kF32;
  std::shared_ptr<void> owner_;
};

inline std::ostream& operator<<(std::ostream& out, const Tensor& t) {
  return out << to_string(t.dtype()) << " (" << t.rows() << ", " << t.cols() << ")";
}

// Calls f.template operator()<T>() with T = float or double.
template <class F>
decltype(auto) visit_float(DType dtype, F&& f) {
  return dtype == DType::kF32 ? f.template operator()<float>() : f.template operator()<double>();
}

}  // namespace fathom::tensor

namespace fathom {
using tensor::DType;
using tensor::Tensor;
}  // namespace fathom
