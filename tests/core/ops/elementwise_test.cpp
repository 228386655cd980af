#include "core/ops/elementwise.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/random_tensor.h"
#include "tests/support/tolerance.h"

namespace fathom::ops {
namespace {

using kernels::Kernels;
using support::normal;
using support::zeros;

TEST(AddScaled, EqualsTheReferenceAndMayWriteOverItsInput) {
  const auto reference = tensor::make_reference_device();
  const auto cpu = tensor::make_cpu_device(1);
  for (const auto& [T, C] : {std::pair{1, 20}, {31, 33}, {33, 1}, {1000, 20}, {3, 1000}}) {
    for (const auto& [a, b] : {std::pair{1.0, 1.0}, {1.0, 0.05}, {-2.5, 0.0}}) {
      const Tensor x = normal(T, C, DType::kF32, 1), z = normal(T, C, DType::kF32, 2);
      const Tensor want = zeros(T, C, DType::kF32), got = support::copy_of(x);

      reference->compute().run(&Kernels::add_scaled, {.x = x, .z = z, .y = want, .a = a, .b = b});
      cpu->compute().run(&Kernels::add_scaled, {.x = got, .z = z, .y = got, .a = a, .b = b});

      EXPECT_TRUE(support::is_near(got, want)) << T << " x " << C;
    }
  }
}

TEST(AddScaled, WithFactorOnePassesTheGradientOnWithoutACopy) {
  const auto device = tensor::make_reference_device();
  Tape tape(*device, DType::kF64, {});
  const Var x = tape.leaf(normal(2, 3, DType::kF64, 1)),
            z = tape.leaf(normal(2, 3, DType::kF64, 2));
  const Tensor dy = normal(2, 3, DType::kF64, 3);

  tape.backward(add_scaled(x, z, 1, 0.5), dy);

  EXPECT_EQ(x.grad().address(), dy.address());
  EXPECT_NE(z.grad().address(), dy.address());
  EXPECT_DOUBLE_EQ(z.grad().data<double>()[4], 0.5 * dy.data<double>()[4]);
}

TEST(AddScaled, RefusesShapesThatDiffer) {
  const auto device = tensor::make_reference_device();
  Tape tape(*device, DType::kF64, {});
  const Var x = tape.constant(zeros(2, 3, DType::kF64)),
            z = tape.constant(zeros(3, 2, DType::kF64));

  EXPECT_TRUE(support::throws_with<InvalidArgument>("add_scaled: x is f64 (2, 3), z is f64 (3, 2)",
                                                    [&] { (void)add_scaled(x, z); }));
}

TEST(Gelu, HasItsKnownValuesOnBothDevices) {
  for (const bool is_cpu : {false, true}) {
    const auto device = is_cpu ? tensor::make_cpu_device(1) : tensor::make_reference_device();
    Tape tape(*device, DType::kF32, {});
    const std::vector<double> at = {0, 1, -1, 10, -10, 0.5};
    const Var x = tape.constant(
        support::filled(1, 6, DType::kF32, [&](auto, auto c) { return at[size_t(c)]; }));

    const Tensor y = gelu(x).value();

    // x Phi(x), Phi the normal distribution function.
    const std::vector<double> want = {0, 0.8413447460685429, -0.15865525393145707, 10,
                                      0, 0.34573123063700656};
    for (size_t i = 0; i < at.size(); ++i) EXPECT_NEAR(y.data<float>()[i], want[i], 1e-6) << at[i];
  }
}

TEST(Gelu, OnTheCpuEqualsTheReferenceElementByElement) {
  const auto reference = tensor::make_reference_device();
  const auto cpu = tensor::make_cpu_device(1);
  for (const auto& [T, C] : {std::pair{1, 20}, {31, 33}, {33, 1}, {1000, 20}, {3, 1000}}) {
    const Tensor x = normal(T, C, DType::kF32, 1, 2), dy = normal(T, C, DType::kF32, 2);
    const Tensor want = zeros(T, C, DType::kF32), got = zeros(T, C, DType::kF32);

    reference->compute().run(&Kernels::gelu_forward, {.x = x, .y = want});
    cpu->compute().run(&Kernels::gelu_forward, {.x = x, .y = got});
    EXPECT_TRUE(support::is_near(got, want)) << T << " x " << C;

    reference->compute().run(&Kernels::gelu_backward, {.dy = dy, .x = x, .dx = want});
    cpu->compute().run(&Kernels::gelu_backward, {.dy = dy, .x = x, .dx = got});
    EXPECT_TRUE(support::is_near(got, want)) << T << " x " << C;
  }
}

}  // namespace
}  // namespace fathom::ops
