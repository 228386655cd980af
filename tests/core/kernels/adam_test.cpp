#include <gtest/gtest.h>

#include "tests/core/kernels/kernel_support.h"
#include "tests/support/tolerance.h"

namespace fathom::kernels {
namespace {

using support::copy_of;
using support::normal;
using support::zeros;

constexpr int64_t kCount = 70000;  // three pieces of the cpu's

struct State {
  Tensor weights, m, v, gradient, working;

  explicit State(DType dtype, bool has_working = false)
      : weights(normal(1, kCount, dtype, 1)),
        m(normal(1, kCount, dtype, 2, 0.1)),
        v(support::absolute(normal(1, kCount, dtype, 3, 0.01))),
        gradient(normal(1, kCount, dtype, 4, 0.1)),
        working(has_working ? random_bits(1, kCount, DType::kBF16, 5) : Tensor{}) {}

  [[nodiscard]] Adam arguments(const Tensor& control) const {
    return {.weights = weights,
            .working = working,
            .gradient = gradient,
            .m = m,
            .v = v,
            .control = control,
            .beta1 = 0.8,
            .beta2 = 0.95,
            .epsilon = 1e-3,
            .rate = 0.02,
            .root = 1.7,
            .decay = 0.01};
  }
};

// The formula, in the type of the weights.
template <class T>
void plain_adam(const State& s, T scale) {
  const T b1 = T(0.8), b2 = T(0.95), c1 = T(1 - 0.8), c2 = T(1 - 0.95);
  for (int64_t i = 0; i < kCount; ++i) {
    T &w = s.weights.data<T>()[i], &m = s.m.data<T>()[i], &v = s.v.data<T>()[i];
    const T g = s.gradient.data<T>()[i] * scale;
    m = b1 * m + c1 * g;
    v = b2 * v + c2 * g * g;
    w = T(1 - 0.01) * w - T(0.02) * m / (std::sqrt(v) * T(1.7) + T(1e-3));
  }
}

TEST(AdamKernel, FollowsThePlainFormula) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const auto& device : devices_for(dtype)) {
      for (const double scale : {1.0, 0.3}) {
        const State got(dtype), want(dtype);
        if (dtype == DType::kF32)
          plain_adam<float>(want, float(scale));
        else
          plain_adam<double>(want, scale);

        device->compute().run(&Kernels::adam, got.arguments(support::update_control(scale)));

        EXPECT_TRUE(support::is_near(got.weights, want.weights)) << device->name();
        EXPECT_TRUE(support::is_near(got.m, want.m)) << device->name();
        EXPECT_TRUE(support::is_near(got.v, want.v)) << device->name();
      }
    }
  }
}

TEST(AdamKernel, WritesNothingWhenTheUpdateIsCancelled) {
  for (const auto& device : support::host_devices()) {
    const bool is_reference = device->name() == "reference";
    const State got(DType::kF32, is_reference), want(DType::kF32, is_reference);
    got.gradient.data<float>()[7] = std::nanf("");
    const Tensor control = support::update_control();
    control.data<double>()[4] = 1;

    device->compute().run(&Kernels::adam, got.arguments(control));

    EXPECT_TRUE(support::has_same_bits(got.weights, want.weights)) << device->name();
    EXPECT_TRUE(support::has_same_bits(got.m, want.m)) << device->name();
    EXPECT_TRUE(support::has_same_bits(got.v, want.v)) << device->name();
    if (is_reference) {
      EXPECT_TRUE(bytes_of(got.working) == bytes_of(want.working));
    }
  }
}

TEST(AdamKernel, ScalesTheGradient) {
  for (const auto& device : support::host_devices()) {
    const State scaled(DType::kF32), halved(DType::kF32);
    for (int64_t i = 0; i < kCount; ++i) halved.gradient.data<float>()[i] *= 0.5f;

    device->compute().run(&Kernels::adam, scaled.arguments(support::update_control(0.5)));
    device->compute().run(&Kernels::adam, halved.arguments(support::update_control(1)));

    EXPECT_TRUE(support::has_same_bits(scaled.weights, halved.weights)) << device->name();
    EXPECT_TRUE(support::has_same_bits(scaled.m, halved.m)) << device->name();
    EXPECT_TRUE(support::has_same_bits(scaled.v, halved.v)) << device->name();
  }
}

TEST(AdamKernel, LeavesTheNewWeightsInBf16AsWell) {
  const auto device = tensor::make_reference_device();
  const State with(DType::kF32, true), without(DType::kF32);

  device->compute().run(&Kernels::adam, with.arguments(support::update_control()));
  device->compute().run(&Kernels::adam, without.arguments(support::update_control()));

  EXPECT_TRUE(support::has_same_bits(with.weights, without.weights));
  for (int64_t i = 0; i < kCount; ++i)
    ASSERT_EQ(float(with.working.data<Bf16>()[i]), nearest_bf16(with.weights.data<float>()[i]));
}

TEST(UpdateNorms, AreThoseOfTheFormulaAndOfTheChange) {
  const std::vector<std::array<int32_t, 3>> chunks = {
      {4000, 5, 0}, {0, 32768, 1}, {2048, 30000, 1}};
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const auto& device : devices_for(dtype)) {
      const State s(dtype);
      const Tensor before = copy_of(s.weights);
      device->compute().run(&Kernels::adam, s.arguments(support::update_control()));
      const Tensor sums = random_bits(int64_t(chunks.size()), 1, DType::kF64, 6);

      device->compute().run(&Kernels::update_norms, {.weights = s.weights,
                                                     .m = s.m,
                                                     .v = s.v,
                                                     .chunks = chunk_table(chunks),
                                                     .sums = sums,
                                                     .epsilon = 1e-3,
                                                     .rate = 0.02,
                                                     .root = 1.7,
                                                     .decay = 0.01});

      for (size_t k = 0; k < chunks.size(); ++k) {
        double formula = 0, change = 0;
        for (int64_t i = chunks[k][0] * 16; i < chunks[k][0] * 16 + chunks[k][1]; ++i) {
          const double w = support::element(s.weights, 0, i), m = support::element(s.m, 0, i),
                       v = support::element(s.v, 0, i);
          formula += std::pow(0.01 * w + 0.02 * m / (std::sqrt(v) * 1.7 + 1e-3), 2);
          change += std::pow(support::element(before, 0, i) - w, 2);
        }
        EXPECT_NEAR(sums.data<double>()[k], formula, 1e-12 * formula) << device->name() << k;
        // Weights decay by 1 %, and the formula takes the new ones for the old.
        EXPECT_NEAR(sums.data<double>()[k], change, 0.03 * change) << device->name() << k;
      }
    }
  }
}

}  // namespace
}  // namespace fathom::kernels
