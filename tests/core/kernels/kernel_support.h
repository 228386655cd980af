// Matrices of random bits, their bytes, and rounding to bf16 by another way than the product's.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/kernels/table.h"
#include "tests/support/devices.h"

namespace fathom::kernels {

// Any bits, NaN among them: for kernels that only move elements.
[[nodiscard]] inline Tensor random_bits(int64_t rows, int64_t cols, DType dtype, uint64_t seed) {
  const PhiloxStream stream(seed, "test bits");
  const Tensor t = support::zeros(rows, cols, dtype);
  for (int64_t i = 0; i < t.bytes(); i += 4) {
    const uint32_t word = uint32_t(stream.bits(uint64_t(i)));
    std::memcpy(t.data<uint8_t>() + i, &word, size_t(std::min<int64_t>(4, t.bytes() - i)));
  }
  return t;
}

[[nodiscard]] inline std::vector<uint8_t> bytes_of(const Tensor& contiguous) {
  const uint8_t* data = contiguous.data<uint8_t>();
  return {data, data + contiguous.bytes()};
}

// The number with 8 significant bits nearest to x, of two the even one; below the smallest normal
// number the last bit is 2^-133. Too large a result is infinity.
[[nodiscard]] inline float nearest_bf16(float x) {
  if (!std::isfinite(x)) return x;
  int exponent = 0;
  (void)std::frexp(double(x), &exponent);
  const int last = std::max(exponent - 8, -133);
  return float(std::ldexp(std::nearbyint(std::ldexp(double(x), -last)), last));
}

// Rows of {first element / 16, elements, parameter}.
[[nodiscard]] inline Tensor chunk_table(const std::vector<std::array<int32_t, 3>>& rows) {
  const Tensor t = support::zeros(int64_t(rows.size()), 3, DType::kI32);
  for (size_t k = 0; k < rows.size(); ++k)
    std::copy(rows[k].begin(), rows[k].end(), t.row<int32_t>(int64_t(k)));
  return t;
}

// The devices that compute in `dtype`.
[[nodiscard]] inline std::vector<std::unique_ptr<Device>> devices_for(DType dtype) {
  std::vector<std::unique_ptr<Device>> all = support::host_devices();
  std::erase_if(all, [dtype](const auto& d) {
    return (d->info().compute_types >> uint32_t(dtype) & 1u) == 0;
  });
  return all;
}

}  // namespace fathom::kernels
