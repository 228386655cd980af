#include "core/ops/layer_norm.h"

#include <gtest/gtest.h>

#include "tests/support/devices.h"
#include "tests/support/expect_error.h"
#include "tests/support/tolerance.h"

namespace fathom::ops {
namespace {

using support::normal;
using support::zeros;

struct Normed {
  Tensor sum, y, mean, rstd;
};

Normed run(Device& device, const Tensor& x, const Tensor& addend, const Tensor& gain,
           const Tensor& bias, double eps) {
  const int64_t T = x.rows(), C = x.cols();
  Normed n = {addend.is_empty() ? x : zeros(T, C, x.dtype()), zeros(T, C, x.dtype()),
              zeros(1, T, x.dtype()), zeros(1, T, x.dtype())};
  device.compute().run(&kernels::Kernels::layer_norm_forward, {.x = x,
                                                               .addend = addend,
                                                               .gain = gain,
                                                               .bias = bias,
                                                               .sum = n.sum,
                                                               .y = n.y,
                                                               .mean = n.mean,
                                                               .rstd = n.rstd,
                                                               .eps = eps});
  return n;
}

Tensor constant_row(int64_t C, DType dtype, double value) {
  return support::filled(1, C, dtype, [&](auto, auto) { return value; });
}

TEST(LayerNorm, OnTheCpuEqualsTheReferenceAtOddSizes) {
  const auto reference = tensor::make_reference_device();
  const auto cpu = tensor::make_cpu_device(1);
  for (const int64_t T : {1, 31, 33, 1000}) {
    for (const int64_t C : {1, 20, 33, 1000}) {
      const Tensor x = normal(T, C, DType::kF32, 1), o = normal(T, C, DType::kF32, 2, 0.3);
      const Tensor gain = normal(1, C, DType::kF32, 3), bias = normal(1, C, DType::kF32, 4);
      for (const Tensor& addend : {Tensor{}, o}) {
        const Normed want = run(*reference, x, addend, gain, bias, 1e-5);
        const Normed got = run(*cpu, x, addend, gain, bias, 1e-5);

        EXPECT_TRUE(support::has_same_bits(got.sum, want.sum)) << T << " x " << C;
        // Relative to the terms of y = xhat gain + bias, which may cancel.
        EXPECT_TRUE(support::is_within(
            got.y, want.y,
            [&](int64_t r, int64_t c) {
              const double b = support::element(bias, 0, c), y = support::element(want.y, r, c);
              const support::Tolerance t = support::tolerance(DType::kF32);
              return t.absolute + t.relative * (std::abs(y - b) + std::abs(b));
            }))
            << T << " x " << C;
        EXPECT_TRUE(support::is_near(got.mean, want.mean)) << T << " x " << C;
        EXPECT_TRUE(support::is_near(got.rstd, want.rstd)) << T << " x " << C;
      }
    }
  }
}

TEST(LayerNorm, GivesRowsOfMeanZeroAndVarianceOneWhateverTheirOffsetAndScale) {
  const int64_t C = 40;
  for (const auto& device : support::host_devices()) {
    const Tensor x = support::filled(3, C, DType::kF32, [&](int64_t r, int64_t c) {
      return 100.0 * double(r) + std::pow(10.0, double(r)) * std::sin(double(c * c));
    });

    const Normed n =
        run(*device, x, {}, constant_row(C, DType::kF32, 1), constant_row(C, DType::kF32, 0), 1e-7);

    for (int64_t r = 0; r < 3; ++r) {
      double sum = 0, squares = 0;
      for (int64_t c = 0; c < C; ++c) {
        sum += n.y.row<float>(r)[c];
        squares += double(n.y.row<float>(r)[c]) * n.y.row<float>(r)[c];
      }
      EXPECT_NEAR(sum / C, 0, 1e-5);
      EXPECT_NEAR(squares / C, 1, 1e-5);
    }
  }
}

// Two entries +-a: y = +-a / sqrt(a^2 + eps).
TEST(LayerNorm, AddsEpsilonToTheVariance) {
  const auto reference = tensor::make_reference_device();
  for (const double eps : {1e-5, 1e-7}) {
    const double a = 1e-3;
    const Tensor x =
        support::filled(1, 2, DType::kF64, [&](auto, auto c) { return c == 0 ? a : -a; });

    const Normed n = run(*reference, x, {}, constant_row(2, DType::kF64, 3),
                         constant_row(2, DType::kF64, 0.5), eps);

    EXPECT_NEAR(n.y.data<double>()[0], 3 * a / std::sqrt(a * a + eps) + 0.5, 1e-12);
    EXPECT_NEAR(n.y.data<double>()[1], -3 * a / std::sqrt(a * a + eps) + 0.5, 1e-12);
  }
}

TEST(LayerNorm, OfASumGivesBothInputsTheSameGradientTensor) {
  const auto device = tensor::make_reference_device();
  ParameterStore store(*device, DType::kF64);
  const Parameter& gain = store.add("norm.gain", Role::kNormGain, {6});
  const Parameter& bias = store.add("norm.bias", Role::kNormBias, {6});
  store.freeze();
  const Tensor gradient = support::zeros(1, store.size(), DType::kF64);
  store.bind_gradients(gradient);
  Tape tape(*device, DType::kF64, {});
  const Var x = tape.leaf(normal(3, 6, DType::kF64, 1)),
            o = tape.leaf(normal(3, 6, DType::kF64, 2));

  const Var y = add_layer_norm(x, o, gain, bias, 1e-5);
  tape.backward(y, normal(3, 6, DType::kF64, 3));

  EXPECT_EQ(x.grad().address(), o.grad().address());
}

TEST(LayerNorm, RefusesShapesThatDoNotFit) {
  const auto device = tensor::make_reference_device();
  ParameterStore store(*device, DType::kF64);
  const Parameter& gain = store.add("norm.gain", Role::kNormGain, {6});
  const Parameter& bias = store.add("norm.bias", Role::kNormBias, {6});
  store.freeze();
  Tape tape(*device, DType::kF64, {});
  const Var wide = tape.constant(normal(3, 7, DType::kF64, 1));
  const Var right = tape.constant(normal(3, 6, DType::kF64, 1));

  EXPECT_TRUE(support::throws_with<InvalidArgument>(
      "layer_norm: norm.gain is f64 (1, 6)", [&] { (void)layer_norm(wide, gain, bias, 1e-5); }));
  EXPECT_TRUE(support::throws_with<InvalidArgument>(
      "layer_norm: x is f64 (3, 6)", [&] { (void)add_layer_norm(right, wide, gain, bias, 1e-5); }));
}

}  // namespace
}  // namespace fathom::ops
