#include <gtest/gtest.h>

#include "tests/core/kernels/kernel_support.h"

namespace fathom::kernels {
namespace {

template <class T>
T number(double value) {
  return T(value);
}

// In place of the elements of columns [first, first + count), in rows of `cols`.
template <class T>
std::vector<uint8_t> filled_bytes(const Tensor& t, int64_t first, int64_t count, double value) {
  std::vector<uint8_t> bytes = bytes_of(t);
  const T v = number<T>(value);
  for (int64_t r = 0; r < t.rows(); ++r)
    for (int64_t c = first; c < first + count; ++c)
      std::memcpy(&bytes[size_t(r * t.cols() + c) * sizeof(T)], &v, sizeof(T));
  return bytes;
}

std::vector<uint8_t> filled_bytes(const Tensor& t, int64_t first, int64_t count, double value) {
  if (t.dtype() == DType::kI32) return filled_bytes<int32_t>(t, first, count, value);
  return visit_float(t.dtype(), [&]<class T>() { return filled_bytes<T>(t, first, count, value); });
}

TEST(Fill, WritesTheValueAndNothingElse) {
  for (const auto& device : support::host_devices()) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kI32}) {
      for (const double value : {0.0, 1.0, -7.0, 1000.0}) {
        for (const auto& [rows, cols] : {std::pair{1, 1}, {5, 7}, {1, 1000}, {3, 70000}}) {
          const Tensor t = random_bits(rows, cols, dtype, 3);
          const std::vector<uint8_t> want = filled_bytes(t, 0, cols, value);

          device->compute().run(&Kernels::fill, {.y = t, .value = value});

          EXPECT_TRUE(bytes_of(t) == want) << device->name() << " " << t << " " << value;
        }
        const Tensor t = random_bits(5, 11, dtype, 3);
        const std::vector<uint8_t> want = filled_bytes(t, 2, 6, value);

        device->compute().run(&Kernels::fill, {.y = t.columns(2, 6), .value = value});

        EXPECT_TRUE(bytes_of(t) == want) << device->name() << " a slice of " << t << " " << value;
      }
    }
  }
}

TEST(Fill, WritesFractionsAndOnePartOfOneRow) {
  for (const auto& device : support::host_devices()) {
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      const Tensor t = random_bits(1, 40, dtype, 3);
      const std::vector<uint8_t> want = filled_bytes(t, 5, 20, 0.1);

      device->compute().run(&Kernels::fill, {.y = t.columns(5, 20), .value = 0.1});

      EXPECT_TRUE(bytes_of(t) == want) << device->name() << " " << t;
    }
  }
}

}  // namespace
}  // namespace fathom::kernels
