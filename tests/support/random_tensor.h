// Tensors and packed rows for tests: pure functions of a seed, owned by the heap. The devices of
// tests reach the host's memory, so these need no device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "core/base/philox.h"
#include "core/data/segments.h"
#include "core/kernels/dropout.h"
#include "core/kernels/segments.h"
#include "core/tensor/tensor.h"

namespace fathom::support {

[[nodiscard]] inline Tensor zeros(int64_t rows, int64_t cols, DType dtype) {
  constexpr size_t kAlignment = 64;
  const size_t bytes = size_t(std::max<int64_t>(rows * cols * size_of(dtype), 1));
  void* memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, bytes);
  return Tensor(memory, rows, cols, dtype, std::shared_ptr<void>(memory, std::free));
}

// (1, n) i32
[[nodiscard]] inline Tensor integers(const std::vector<int32_t>& values) {
  const Tensor t = zeros(1, int64_t(values.size()), DType::kI32);
  std::copy(values.begin(), values.end(), t.data<int32_t>());
  return t;
}

// As a kernel sees them; `segments` must outlive it.
[[nodiscard]] inline kernels::Segments view(const data::Segments& segments) {
  return {.begin = segments.begin.data(),
          .length = segments.length.data(),
          .count = segments.count(),
          .total = segments.total,
          .longest = segments.longest()};
}

// f(r, c) at every element.
template <class F>
[[nodiscard]] Tensor filled(int64_t rows, int64_t cols, DType dtype, const F& f) {
  const Tensor t = zeros(rows, cols, dtype);
  visit_float(dtype, [&]<class T>() {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) t.row<T>(r)[c] = T(double(f(r, c)));
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

// The rows of some sentences packed one after the other. What a row holds depends on its sentence
// and position only, so a sentence is the same in any batch.
struct Rows {
  data::Segments segments;
  std::vector<int32_t> sentence, position;

  Rows(const std::vector<int32_t>& lengths, const std::vector<int32_t>& sentences)
      : segments(data::Segments::from_lengths(lengths)) {
    for (size_t i = 0; i < lengths.size(); ++i) {
      for (int32_t p = 0; p < lengths[i]; ++p) {
        sentence.push_back(sentences[i]);
        position.push_back(p);
      }
    }
  }
  explicit Rows(const std::vector<int32_t>& lengths) : Rows(lengths, numbered(lengths.size())) {}

  [[nodiscard]] int64_t count() const { return segments.total; }
  // These must not outlive the rows.
  [[nodiscard]] kernels::RowIds ids() const { return {sentence.data(), position.data()}; }
  [[nodiscard]] kernels::Segments view() const { return support::view(segments); }
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

 private:
  static std::vector<int32_t> numbered(size_t n) {
    std::vector<int32_t> out;
    for (size_t i = 0; i < n; ++i) out.push_back(int32_t(i) + 7);
    return out;
  }
  [[nodiscard]] uint64_t place(int64_t r) const {
    return uint64_t{uint32_t(sentence[size_t(r)])} * 65536 + uint32_t(position[size_t(r)]);
  }
};

}  // namespace fathom::support
