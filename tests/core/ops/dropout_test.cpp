#include "core/kernels/dropout.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "core/kernels/simd_cpu.h"
#include "core/ops/linear.h"
#include "tests/support/devices.h"
#include "tests/support/tolerance.h"

namespace fathom::ops {
namespace {

using support::Rows;

TEST(Dropout, OnTheCpuKeepsExactlyWhatTheReferenceKeeps) {
  for (const double p : {1.0 / 65536, 0.1, 0.5, 0.9, 65535.0 / 65536}) {
    const Rows rows({2, 1, 3}, {0, 123456789, -1});
    const kernels::Dropout dropout =
        kernels::DropoutStep{.seed = 42, .step = 1000000}.at(99, p, rows.ids());
    ASSERT_TRUE(dropout.is_active());
    for (const int64_t count : {1, 7, 8, 31, 33, 64, 65, 1000}) {
      for (int64_t row = 0; row < rows.count(); ++row) {
        for (const uint32_t plane : {0u, 1u, 5u}) {
          std::vector<float> factors(size_t((count + 63) / 64 * 64));

          kernels::cpu::simd().dropout_factors(dropout, uint32_t(rows.position[size_t(row)]),
                                               uint32_t(rows.sentence[size_t(row)]), plane, count,
                                               factors.data());

          for (int64_t f = 0; f < count; ++f)
            ASSERT_EQ(factors[size_t(f)], float(dropout.factor(row, f, plane)))
                << "p " << p << ", row " << row << ", feature " << f << ", plane " << plane;
        }
      }
    }
  }
}

double dropped_share(const kernels::Dropout& d, int64_t rows, int64_t features) {
  int64_t dropped = 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t f = 0; f < features; ++f) dropped += d.factor(r, f) == 0;
  return double(dropped) / double(rows * features);
}

TEST(Dropout, DropsTheGivenShareAndPreservesTheMean) {
  const Rows rows(std::vector<int32_t>(50, 10));
  for (const double p : {0.1, 0.3, 0.5}) {
    const kernels::Dropout d = kernels::DropoutStep{.seed = 1, .step = 2}.at(3, p, rows.ids());
    const double rounded = double(std::lround(p * 65536)) / 65536;

    const double share = dropped_share(d, rows.count(), 400);

    const double sigma = std::sqrt(p * (1 - p) / (500 * 400));
    EXPECT_NEAR(share, rounded, 5 * sigma);
    EXPECT_DOUBLE_EQ(d.keep_scale(), 1 / (1 - rounded));
  }
}

// The share of elements on which two masks agree is p^2 + (1-p)^2 when they are independent.
TEST(Dropout, MasksOfOtherSeedsStepsSitesSentencesPositionsAndHeadsAreIndependent) {
  const double p = 0.5;
  const Rows rows(std::vector<int32_t>(40, 25)), others(std::vector<int32_t>(40, 25), [] {
    std::vector<int32_t> names;
    for (int32_t i = 0; i < 40; ++i) names.push_back(1000 + i);
    return names;
  }());
  Rows shifted = rows;
  for (int32_t& q : shifted.position) q += 25;
  const kernels::Dropout base = kernels::DropoutStep{.seed = 1, .step = 2}.at(3, p, rows.ids());
  struct Other {
    const char* what;
    kernels::Dropout dropout;
    uint32_t plane;
  };
  const std::vector<Other> variants = {
      {"seed", kernels::DropoutStep{.seed = 2, .step = 2}.at(3, p, rows.ids()), 0},
      {"step", kernels::DropoutStep{.seed = 1, .step = 3}.at(3, p, rows.ids()), 0},
      {"site", kernels::DropoutStep{.seed = 1, .step = 2}.at(4, p, rows.ids()), 0},
      {"sentence", kernels::DropoutStep{.seed = 1, .step = 2}.at(3, p, others.ids()), 0},
      {"position", kernels::DropoutStep{.seed = 1, .step = 2}.at(3, p, shifted.ids()), 0},
      {"head", base, 1},
  };
  for (const Other& v : variants) {
    int64_t equal = 0;
    for (int64_t r = 0; r < rows.count(); ++r)
      for (int64_t f = 0; f < 100; ++f)
        equal += (base.factor(r, f) == 0) == (v.dropout.factor(r, f, v.plane) == 0);

    EXPECT_NEAR(double(equal) / 1e5, 0.5, 5 * 0.5 / std::sqrt(1e5)) << v.what;
  }
}

TEST(Dropout, OfARowDoesNotDependOnItsPlaceInTheBatch) {
  const Rows together({3, 5, 2}, {10, 20, 30}), alone({5}, {20});
  const kernels::DropoutStep step = {.seed = 8, .step = 9};
  const kernels::Dropout all = step.at(1, 0.4, together.ids()), one = step.at(1, 0.4, alone.ids());

  for (int64_t r = 0; r < 5; ++r)
    for (int64_t f = 0; f < 50; ++f) EXPECT_EQ(all.factor(r + 3, f), one.factor(r, f));
}

TEST(Dropout, OfZeroOrSwitchedOffChangesNothing) {
  const auto device = tensor::make_reference_device();
  const Rows rows({4});
  Tape on(*device, DType::kF32, {.dropout = {.seed = 1, .step = 1}});
  Tape off(*device, DType::kF32, {.training = false, .dropout = {.seed = 1, .step = 1}});

  EXPECT_TRUE(on.dropout(1, 0.1, rows.ids()).is_active());
  EXPECT_FALSE(on.dropout(1, 0, rows.ids()).is_active());
  EXPECT_FALSE(off.dropout(1, 0.1, rows.ids()).is_active());
  EXPECT_EQ(kernels::Dropout{}.factor(0, 0), 1);
}

// A dropped element of a relu is inferred from its output alone; both devices must agree on it.
TEST(Dropout, DropsTheSameElementsOfALinearLayerOnBothDevices) {
  const Rows rows({9, 4});
  const kernels::Dropout dropout =
      kernels::DropoutStep{.seed = 3, .step = 1}.at(2, 0.5, rows.ids());
  const Tensor x = rows.normal(11, DType::kF32, 1), w = support::normal(29, 11, DType::kF32, 2);
  const Tensor a = support::zeros(13, 29, DType::kF32), b = support::zeros(13, 29, DType::kF32);

  for (const auto& device : support::host_devices())
    device->compute().run(
        &kernels::Kernels::linear_forward,
        {.x = x, .w = w, .b = {}, .y = device->name() == "cpu" ? b : a, .dropout = dropout});

  int64_t dropped = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    EXPECT_EQ(a.data<float>()[i] == 0, b.data<float>()[i] == 0) << i;
    dropped += a.data<float>()[i] == 0;
  }
  EXPECT_GT(dropped, 13 * 29 / 3);
  EXPECT_LT(dropped, 13 * 29 * 2 / 3);
}

}  // namespace
}  // namespace fathom::ops
