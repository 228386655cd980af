#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/core/kernels/kernel_support.h"
#include "tests/support/tolerance.h"

namespace fathom::kernels {
namespace {

using support::integers;

constexpr DType kAllTypes[] = {DType::kF32, DType::kF64, DType::kBF16, DType::kI32};

// Copies row `i` of `from` to row `k` of `to`, both in columns of wider matrices.
void copy_row(std::vector<uint8_t>& to, int64_t k, int64_t to_first, int64_t to_cols,
              const Tensor& from, int64_t i, int64_t from_first, int64_t count) {
  const int64_t size = size_of(from.dtype());
  std::memcpy(&to[size_t((k * to_cols + to_first) * size)],
              from.data<uint8_t>() + (i * from.cols() + from_first) * size, size_t(count * size));
}

TEST(AppendRows, WritesEachRowWhereItsIndexSaysAndNothingElse) {
  const std::vector<int32_t> index = {7, 0, 3, 10, 2};
  for (const auto& device : support::host_devices()) {
    for (const DType dtype : kAllTypes) {
      const Tensor from = random_bits(5, 13, dtype, 1), to = random_bits(11, 9, dtype, 2);
      std::vector<uint8_t> want = bytes_of(to);
      for (size_t r = 0; r < index.size(); ++r)
        copy_row(want, index[r], 2, 9, from, int64_t(r), 4, 6);

      device->compute().run(
          &Kernels::append_rows,
          {.from = from.columns(4, 6), .to = to.columns(2, 6), .index = integers(index)});

      EXPECT_TRUE(bytes_of(to) == want) << device->name() << " " << to;
    }
  }
}

TEST(GatherRows, ReadsEachRowWhereItsIndexSays) {
  const std::vector<int32_t> index = {3, 3, 0, 10, 9, 3};
  for (const auto& device : support::host_devices()) {
    for (const DType dtype : kAllTypes) {
      const Tensor from = random_bits(11, 13, dtype, 1), to = random_bits(6, 9, dtype, 2);
      std::vector<uint8_t> want = bytes_of(to);
      for (size_t r = 0; r < index.size(); ++r)
        copy_row(want, int64_t(r), 1, 9, from, index[r], 5, 7);

      device->compute().run(
          &Kernels::gather_rows,
          {.from = from.columns(5, 7), .to = to.columns(1, 7), .index = integers(index)});

      EXPECT_TRUE(bytes_of(to) == want) << device->name() << " " << to;
    }
  }
}

// The indices of the k largest, one after the other by a scan over all that are left.
std::vector<int32_t> best_of(const Tensor& logits, int64_t row, int64_t k) {
  std::vector<bool> is_taken(size_t(logits.cols()));
  std::vector<int32_t> out;
  while (int64_t(out.size()) < k) {
    int32_t best = -1;
    for (int32_t v = 0; v < logits.cols(); ++v) {
      if (is_taken[size_t(v)]) continue;
      const double z = support::element(logits, row, v);
      const double leader = best < 0 ? std::nan("") : support::element(logits, row, best);
      if (best < 0 || z > leader || (std::isnan(leader) && !std::isnan(z))) best = v;
    }
    is_taken[size_t(best)] = true;
    out.push_back(best);
  }
  return out;
}

double log_sum_exp(const Tensor& logits, int64_t row) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t v = 0; v < logits.cols(); ++v)
    largest = std::max(largest, support::element(logits, row, v));
  for (int64_t v = 0; v < logits.cols(); ++v)
    sum += std::exp(support::element(logits, row, v) - largest);
  return largest + std::log(sum);
}

void expect_top_k(Device& device, const Tensor& logits, int64_t k) {
  const Tensor indices = random_bits(logits.rows(), k, DType::kI32, 5);
  const Tensor alone = random_bits(logits.rows(), k, DType::kI32, 6);
  const Tensor values = support::zeros(logits.rows(), k, wide_of(logits.dtype()));

  device.compute().run(&Kernels::top_k, {.logits = logits, .values = values, .indices = indices});
  device.compute().run(&Kernels::top_k, {.logits = logits, .values = {}, .indices = alone});

  EXPECT_TRUE(bytes_of(alone) == bytes_of(indices));
  for (int64_t r = 0; r < logits.rows(); ++r) {
    const std::vector<int32_t> want = best_of(logits, r, k);
    const int32_t* got = indices.row<int32_t>(r);
    EXPECT_EQ(std::vector<int32_t>(got, got + k), want) << device.name() << ", row " << r;
    const double lse = log_sum_exp(logits, r);
    for (int64_t i = 0; i < k; ++i) {
      const double value = support::element(logits, r, want[size_t(i)]) - lse;
      const double given = support::element(values, r, i);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(given));
      else
        EXPECT_NEAR(given, value,
                    values.dtype() == DType::kF64 ? 1e-12 : 2e-6 * (1 + std::abs(value)));
    }
  }
}

TEST(TopK, AreTheLargestWithTheirLogProbabilities) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16})
    for (const auto& device : devices_for(dtype))
      for (const int64_t V : {5, 33, 1000})
        for (const int64_t k : {1, 5}) expect_top_k(*device, support::normal(9, V, dtype, 1, 3), k);
}

TEST(TopK, OfEqualLogitsTakesTheLowerIndexFirst) {
  for (const auto& device : support::host_devices()) {
    const Tensor logits = support::filled(
        6, 20, DType::kF32, [](int64_t r, int64_t c) { return r == 0 ? 4 : (c * 7 + r) % 4; });
    for (const int64_t k : {1, 5, 20}) expect_top_k(*device, logits, k);
  }
}

TEST(TopK, TakesNanLast) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<double>> rows = {
      {nan, 1, 2, nan, 0, -5},
      {1, nan, nan, nan, nan, nan},
      {nan, nan, nan, nan, nan, nan},
      {nan, -infinity, 3, nan, -infinity, -1},
      {-1e30, nan, -infinity, 1e30, 0, 1e30},
  };
  for (const auto& device : support::host_devices()) {
    const Tensor logits =
        support::filled(int64_t(rows.size()), 6, DType::kF32,
                        [&](int64_t r, int64_t c) { return rows[size_t(r)][size_t(c)]; });
    for (const int64_t k : {1, 5, 6}) expect_top_k(*device, logits, k);
  }
}

TEST(TopK, SurvivesLogitsFarOutsideTheRangeOfExp) {
  for (const auto& device : support::host_devices())
    for (const int64_t k : {1, 5})
      expect_top_k(*device, support::normal(4, 40, DType::kF32, 2, 300), k);
}

}  // namespace
}  // namespace fathom::kernels
