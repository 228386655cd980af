// A matrix (rows, cols) in a device's memory: activations are (T, C), T packed real tokens, never
// padding. A tensor is a view; its memory is owned by the arena (activations), by a block at the
// arena's top (gradients: `owner` is set) or by the device (parameters). Copies share elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>

#include "core/base/error.h"
#include "core/kernels/matrix.h"

namespace fathom::tensor {

using kernels::DType;
using kernels::dtype_of;
using kernels::visit_float;

class Tensor {
 public:
  Tensor() = default;
  Tensor(void* data, int64_t rows, int64_t cols, DType dtype, std::shared_ptr<void> owner = {})
      : matrix_{data, rows, cols, cols, dtype}, owner_(std::move(owner)) {}

  [[nodiscard]] bool is_empty() const { return matrix_.data == nullptr; }
  [[nodiscard]] int64_t rows() const { return matrix_.rows; }
  [[nodiscard]] int64_t cols() const { return matrix_.cols; }
  [[nodiscard]] int64_t stride() const { return matrix_.stride; }  // elements from row to row
  [[nodiscard]] int64_t numel() const { return matrix_.numel(); }
  [[nodiscard]] int64_t bytes() const { return matrix_.bytes(); }
  [[nodiscard]] DType dtype() const { return matrix_.dtype; }
  [[nodiscard]] bool is_contiguous() const {
    return matrix_.stride == matrix_.cols || matrix_.rows <= 1;
  }

  // As a kernel's argument. Only devices may dereference the address.
  [[nodiscard]] const kernels::Matrix& matrix() const { return matrix_; }
  // NOLINTNEXTLINE(google-explicit-constructor): a tensor is written where a kernel takes a matrix
  operator const kernels::Matrix&() const { return matrix_; }
  [[nodiscard]] void* address() const { return matrix_.data; }

  // For tests, on devices whose memory the host can reach.
  template <class T>
  [[nodiscard]] T* data() const {
    return matrix_.as<T>();
  }
  template <class T>
  [[nodiscard]] T* row(int64_t r) const {
    return matrix_.row<T>(r);
  }

  // Columns [first, first + count) of every row, rows [first, first + count) with every column.
  [[nodiscard]] Tensor columns(int64_t first, int64_t count) const {
    Tensor t = *this;
    t.matrix_.data = at(first);
    t.matrix_.cols = count;
    return t;
  }
  [[nodiscard]] Tensor row_range(int64_t first, int64_t count) const {
    Tensor t = *this;
    t.matrix_.data = at(first * matrix_.stride);
    t.matrix_.rows = count;
    return t;
  }
  // The same elements, contiguous, as (rows, cols).
  [[nodiscard]] Tensor reshaped(int64_t rows, int64_t cols) const {
    require(is_contiguous() && rows * cols == numel(), "reshape: (", this->rows(), ", ",
            this->cols(), ") to (", rows, ", ", cols, ")");
    Tensor t = *this;
    t.matrix_.rows = rows;
    t.matrix_.cols = t.matrix_.stride = cols;
    return t;
  }

  [[nodiscard]] bool same_shape(const Tensor& other) const {
    return rows() == other.rows() && cols() == other.cols();
  }
  // True when this handle is the only one on an owned block: it may be written in place.
  [[nodiscard]] bool is_sole_owner() const { return owner_ && owner_.use_count() == 1; }

 private:
  [[nodiscard]] void* at(int64_t element) const {
    return static_cast<std::byte*>(matrix_.data) + element * size_of(matrix_.dtype);
  }

  kernels::Matrix matrix_;
  std::shared_ptr<void> owner_;
};

inline std::ostream& operator<<(std::ostream& out, const Tensor& t) {
  return out << to_string(t.dtype()) << " (" << t.rows() << ", " << t.cols() << ")";
}

}  // namespace fathom::tensor

namespace fathom {
using tensor::DType;
using tensor::Tensor;
}  // namespace fathom
