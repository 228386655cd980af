// A block of a matrix of floats, or of its transpose: a pointer, a shape and two strides.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/kernels/matrix.h"

namespace fathom::kernels::cpu {

template <class T>
struct BasicView {
  T* data;
  int64_t rows, cols;
  int64_t stride;    // elements from row to row
  int64_t step = 1;  // elements from column to column

  [[nodiscard]] T* row(int64_t r) const { return data + r * stride; }
  [[nodiscard]] BasicView transposed() const { return {data, cols, rows, step, stride}; }
  [[nodiscard]] BasicView rows_at(int64_t first, int64_t count) const {
    return {row(first), count, cols, stride, step};
  }
  [[nodiscard]] BasicView first_cols(int64_t count) const {
    return {data, rows, count, stride, step};
  }
  // NOLINTNEXTLINE(google-explicit-constructor): as a pointer to const may be made of a pointer
  operator BasicView<const T>() const requires(!std::is_const_v<T>) {
    return {data, rows, cols, stride, step};
  }
};
using View = BasicView<float>;
using ConstView = BasicView<const float>;

// `cols` columns from `column` on, of `rows` rows from `row` on.
[[nodiscard]] inline View view(const Matrix& m, int64_t row, int64_t rows, int64_t column,
                               int64_t cols) {
  return {m.row<float>(row) + column, rows, cols, m.stride};
}

}  // namespace fathom::kernels::cpu
