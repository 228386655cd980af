// The reference's kernels on bf16, bit by bit: arithmetic in f32 by the formula, rounded once.
#include <numbers>

#include <gtest/gtest.h>

#include "tests/core/kernels/kernel_support.h"
#include "tests/support/tolerance.h"

namespace fathom::kernels {
namespace {

using support::normal;
using support::zeros;

constexpr int64_t kRows = 37, kCols = 33;

float at(const Tensor& t, int64_t r, int64_t c) { return float(support::element(t, r, c)); }

// Every element of a bf16 tensor is nearest_bf16(want(r, c)).
template <class Want>
void expect_rounded_once(const Tensor& got, const Want& want) {
  ASSERT_EQ(got.dtype(), DType::kBF16);
  int64_t inexact = 0;
  for (int64_t r = 0; r < got.rows(); ++r) {
    for (int64_t c = 0; c < got.cols(); ++c) {
      const float exact = want(r, c);
      EXPECT_EQ(at(got, r, c), nearest_bf16(exact)) << r << ", " << c;
      inexact += nearest_bf16(exact) != exact;
    }
  }
  EXPECT_GT(inexact, got.numel() / 2) << "hardly anything was rounded";
}

TEST(AddScaledInBf16, IsTheSumInF32RoundedOnce) {
  const auto device = tensor::make_reference_device();
  const Tensor x = normal(kRows, kCols, DType::kBF16, 1),
               z = normal(kRows, kCols, DType::kBF16, 2, 0.01);
  for (const auto& [a, b] : {std::pair{1.0, 1.0}, {1.5, -0.75}, {1.0, 0.05}, {-0.3, 7.7}}) {
    const Tensor y = zeros(kRows, kCols, DType::kBF16);

    device->compute().run(&Kernels::add_scaled, {.x = x, .z = z, .y = y, .a = a, .b = b});

    expect_rounded_once(y, [&, fa = float(a), fb = float(b)](int64_t r, int64_t c) {
      return fa * at(x, r, c) + fb * at(z, r, c);
    });
  }
}

TEST(AddScaledInBf16, TakesEachMatrixInItsOwnType) {
  const auto device = tensor::make_reference_device();
  const Tensor x = normal(kRows, kCols, DType::kF32, 1), z = normal(kRows, kCols, DType::kBF16, 2),
               wide = zeros(kRows, kCols, DType::kF32), narrow = zeros(kRows, kCols, DType::kBF16),
               copy = zeros(kRows, kCols, DType::kF32);

  device->compute().run(&Kernels::add_scaled, {.x = x, .z = z, .y = wide});
  device->compute().run(&Kernels::add_scaled, {.x = x, .z = z, .y = narrow});
  device->compute().run(&Kernels::add_scaled, {.x = z, .z = {}, .y = copy});

  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kCols; ++c) {
      EXPECT_EQ(at(wide, r, c), at(x, r, c) + at(z, r, c));
      EXPECT_EQ(at(copy, r, c), at(z, r, c));
    }
  }
  expect_rounded_once(narrow, [&](int64_t r, int64_t c) { return at(x, r, c) + at(z, r, c); });
}

TEST(GeluInBf16, IsTheFormulaInF32RoundedOnce) {
  const auto device = tensor::make_reference_device();
  const Tensor x = normal(kRows, kCols, DType::kBF16, 1, 2),
               dy = normal(kRows, kCols, DType::kBF16, 2), y = zeros(kRows, kCols, DType::kBF16),
               dx = zeros(kRows, kCols, DType::kBF16);

  device->compute().run(&Kernels::gelu_forward, {.x = x, .y = y});
  device->compute().run(&Kernels::gelu_backward, {.dy = dy, .x = x, .dx = dx});

  const auto cdf = [](float v) { return 0.5f * (1 + std::erf(v / std::numbers::sqrt2_v<float>)); };
  expect_rounded_once(y, [&](int64_t r, int64_t c) { return at(x, r, c) * cdf(at(x, r, c)); });
  expect_rounded_once(dx, [&](int64_t r, int64_t c) {
    const float v = at(x, r, c);
    const float pdf = std::exp(-0.5f * v * v) / std::sqrt(2 * std::numbers::pi_v<float>);
    return at(dy, r, c) * (cdf(v) + v * pdf);
  });
}

// One row's statistics in f32, in the order of the row.
struct RowNorm {
  std::vector<float> s;
  float mean = 0, rstd = 0;

  RowNorm(std::vector<float> row, float eps) : s(std::move(row)) {
    float variance = 0;
    for (const float v : s) mean += v / float(s.size());
    for (const float v : s) variance += (v - mean) * (v - mean) / float(s.size());
    rstd = 1 / std::sqrt(variance + eps);
  }
};

TEST(LayerNormInBf16, IsTheFormulaInF32RoundedOnce) {
  const auto device = tensor::make_reference_device();
  const Tensor gain = normal(1, kCols, DType::kF32, 3), bias = normal(1, kCols, DType::kF32, 4);
  // The stream may be wider than the output; its sum is kept in its own type.
  for (const DType stream : {DType::kBF16, DType::kF32}) {
    for (const bool of_sum : {false, true}) {
      const Tensor x = normal(kRows, kCols, stream, 1), o = normal(kRows, kCols, DType::kBF16, 2);
      const Tensor sum = zeros(kRows, kCols, stream), y = zeros(kRows, kCols, DType::kBF16),
                   mean = zeros(1, kRows, DType::kF32), rstd = zeros(1, kRows, DType::kF32);

      device->compute().run(&Kernels::layer_norm_forward, {.x = x,
                                                           .addend = of_sum ? o : Tensor{},
                                                           .gain = gain,
                                                           .bias = bias,
                                                           .sum = of_sum ? sum : x,
                                                           .y = y,
                                                           .mean = mean,
                                                           .rstd = rstd,
                                                           .eps = 1e-5});

      std::vector<RowNorm> rows;
      for (int64_t r = 0; r < kRows; ++r) {
        std::vector<float> s;
        for (int64_t c = 0; c < kCols; ++c) {
          const float exact = of_sum ? at(x, r, c) + at(o, r, c) : at(x, r, c);
          s.push_back(stream == DType::kBF16 ? nearest_bf16(exact) : exact);
          if (of_sum) {
            EXPECT_EQ(at(sum, r, c), s.back());
          }
        }
        rows.emplace_back(std::move(s), 1e-5f);
        EXPECT_EQ(mean.data<float>()[r], rows.back().mean);
        EXPECT_EQ(rstd.data<float>()[r], rows.back().rstd);
      }
      expect_rounded_once(y, [&](int64_t r, int64_t c) {
        const RowNorm& n = rows[size_t(r)];
        return (n.s[size_t(c)] - n.mean) * n.rstd * at(gain, 0, c) + at(bias, 0, c);
      });
    }
  }
}

// Masters to working weights: the rounding that training does.
TEST(RoundingInBf16, OfAFlatBufferIsToNearestEven) {
  const auto device = tensor::make_reference_device();
  const Tensor masters = normal(1, 1000, DType::kF32, 1), working = zeros(1, 1000, DType::kBF16);

  device->compute().run(&Kernels::add_scaled, {.x = masters, .z = {}, .y = working});

  expect_rounded_once(working, [&](int64_t r, int64_t c) { return at(masters, r, c); });
}

}  // namespace
}  // namespace fathom::kernels
