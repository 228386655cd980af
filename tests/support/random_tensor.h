// Tensors and packed rows for tests: pure functions of a seed, owned by the heap.
#pragma once

#include <string>
#include <vector>

#include "core/autograd/parameter.h"
#include "core/base/philox.h"
#include "core/kernels/dropout.h"
#include "core/kernels/segments.h"
#include "core/tensor/tensor.h"

namespace fathom::support {

[[nodiscard]] inline Tensor zeros(int64_t rows, int64_t cols, DType dtype) {
  return autograd::allocate_flat(rows * cols, dtype).reshaped(rows, cols);
}

// f(r, c) at every element.
template <class F>
[[nodiscard]] Tensor filled(int64_t rows, int64_t cols, DType dtype, const F& f) {
  const Tensor t = zeros(rows, cols, dtype);
  visit_float(dtype, [&]<class T>() {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) t.row<T>(r)[c] = T(f(r, c));
  });
  return t;
}

[[nodiscard]] inline Tensor normal(int64_t rows, int64_t cols, DType dtype, uint64_t seed,
                                   double deviation = 1) {
  const PhiloxStream stream(seed, "test tensor");
  return filled(rows, cols, dtype, [&](int64_t r, int64_t c) {
    return deviation * stream.normal(uint64_t(r * cols + c));
  });
}

[[nodiscard]] inline Tensor copy_of(const Tensor& t) {
  return filled(t.rows(), t.cols(), t.dtype(), [&](int64_t r, int64_t c) {
    return visit_float(t.dtype(), [&]<class T>() { return double(t.row<T>(r)[c]); });
  });
}

[[nodiscard]] inline Tensor absolute(const Tensor& t) {
  return filled(t.rows(), t.cols(), t.dtype(), [&](int64_t r, int64_t c) {
    return visit_float(t.dtype(), [&]<class T>() { return std::abs(double(t.row<T>(r)[c])); });
  });
}

// The rows of some sentences packed one behind the other. What a row holds depends on its sentence
// and position only, so that a sentence looks the same in whatever batch it stands.
struct Rows {
  kernels::Segments segments;
  std::vector<uint32_t> sentence, position;

  Rows(const std::vector<int32_t>& lengths, const std::vector<uint32_t>& sentences)
      : segments(kernels::Segments::from_lengths(lengths)) {
    for (size_t i = 0; i < lengths.size(); ++i) {
      for (int32_t p = 0; p < lengths[i]; ++p) {
        sentence.push_back(sentences[i]);
        position.push_back(uint32_t(p));
      }
    }
  }
  explicit Rows(const std::vector<int32_t>& lengths) : Rows(lengths, numbered(lengths.size())) {}

  [[nodiscard]] int64_t count() const { return segments.total; }
  [[nodiscard]] kernels::RowIds ids() const { return {sentence, position}; }
  [[nodiscard]] Tensor normal(int64_t cols, DType dtype, uint64_t seed) const {
    const PhiloxStream stream(seed, "test rows");
    return filled(count(), cols, dtype, [&](int64_t r, int64_t c) {
      return stream.normal(place(r) * 4096 + uint64_t(c));
    });
  }
  [[nodiscard]] std::vector<int32_t> tokens(int64_t vocabulary, uint64_t seed) const {
    const PhiloxStream stream(seed, "test tokens");
    std::vector<int32_t> out;
    for (int64_t r = 0; r < count(); ++r)
      out.push_back(int32_t(stream.bits(place(r)) % uint64_t(vocabulary)));
    return out;
  }
  [[nodiscard]] std::vector<int32_t> positions() const {
    return {position.begin(), position.end()};
  }

 private:
  static std::vector<uint32_t> numbered(size_t n) {
    std::vector<uint32_t> out;
    for (size_t i = 0; i < n; ++i) out.push_back(uint32_t(i) + 7);
    return out;
  }
  [[nodiscard]] uint64_t place(int64_t r) const {
    return uint64_t{sentence[size_t(r)]} * 65536 + position[size_t(r)];
  }
};

}  // namespace fathom::support
