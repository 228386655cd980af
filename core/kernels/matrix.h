// A matrix (rows, cols) in a device's memory, as kernels see it: plain data that crosses the
// boundary to a device library. Nothing here owns memory; only a device's own files and its kernels
// look behind `data`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/dtype.h"

namespace fathom::kernels {

struct Matrix {
  void* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // elements from row to row
  DType dtype = DType::kF32;

  [[nodiscard]] bool is_empty() const { return data == nullptr; }
  [[nodiscard]] int64_t numel() const { return rows * cols; }
  [[nodiscard]] int64_t bytes() const { return numel() * size_of(dtype); }  // contiguous ones

  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data);
  }
  template <class T>
  [[nodiscard]] T* row(int64_t r) const {
    return static_cast<T*>(data) + r * stride;
  }
};

// One element of a floating-point matrix of any type, as f64. For host kernels of mixed types.
[[nodiscard]] inline double load(const Matrix& m, int64_t r, int64_t c) {
  return visit_float(m.dtype, [&]<class T>() { return double(m.row<T>(r)[c]); });
}
inline void store(const Matrix& m, int64_t r, int64_t c, double value) {
  visit_float(m.dtype, [&]<class T>() { m.row<T>(r)[c] = T(value); });
}

}  // namespace fathom::kernels
