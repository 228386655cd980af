#include "core/ops/linear.h"

#include <gtest/gtest.h>

#include "tests/support/devices.h"
#include "tests/support/expect_error.h"
#include "tests/support/tolerance.h"

namespace fathom::ops {
namespace {

using support::absolute;
using support::normal;
using support::zeros;

struct Case {
  int64_t T, N, K;
  bool relu, dropout;
};

// One forward and backward pass on `device`; gradients of parameters start at dw0, db0.
struct Pass {
  Tensor y, dx, dw, db;

  Pass(Device& device, const Case& c, const kernels::Dropout& dropout, Tensor x, Tensor w, Tensor b,
       Tensor dy, Tensor dw0, Tensor db0, Tensor mask = {})
      : y(zeros(c.T, c.N, DType::kF32)),
        dx(zeros(c.T, c.K, DType::kF32)),
        dw(support::copy_of(dw0)),
        db(support::copy_of(db0)) {
    device.compute().run(&kernels::Kernels::linear_forward,
                         {.x = x, .w = w, .b = b, .y = y, .relu = c.relu, .dropout = dropout});
    device.compute().run(&kernels::Kernels::linear_backward,
                         {.dy = dy,
                          .x = x,
                          .w = w,
                          .y = mask.is_empty() ? y : mask,
                          .dx = dx,
                          .dw = dw,
                          .db = db,
                          .scratch = c.relu || c.dropout ? zeros(c.T, c.N, DType::kF32) : Tensor{},
                          .relu = c.relu,
                          .dropout = dropout});
  }
};

TEST(Linear, OnTheCpuIsWithinEightEpsilonOfTheProductsOfAbsoluteValues) {
  const auto reference = tensor::make_reference_device();
  const auto cpu = tensor::make_cpu_device(1);
  const std::vector<Case> cases = {
      {1, 20, 33, false, false},    {31, 33, 20, true, false},   {33, 1000, 31, false, true},
      {1000, 31, 33, true, true},   {1000, 33, 20, true, false}, {1, 1000, 1000, false, false},
      {33, 20, 1000, false, false}, {31, 1, 33, true, true},     {65, 513, 17, false, false},
      {600, 40, 8, false, true},
  };
  for (const Case& c : cases) {
    const support::Rows rows({int32_t(c.T)});
    const kernels::Dropout dropout =
        c.dropout ? kernels::DropoutStep{.seed = 3, .step = 4}.at(5, 0.2, rows.ids())
                  : kernels::Dropout{};
    const Tensor x = normal(c.T, c.K, DType::kF32, 1), w = normal(c.N, c.K, DType::kF32, 2),
                 b = normal(1, c.N, DType::kF32, 3), dy = normal(c.T, c.N, DType::kF32, 4),
                 dw0 = normal(c.N, c.K, DType::kF32, 5), db0 = normal(1, c.N, DType::kF32, 6);

    const Pass want(*reference, c, dropout, x, w, b, dy, dw0, db0);
    const Pass got(*cpu, c, dropout, x, w, b, dy, dw0, db0, want.y);
    const Pass magnitude(*reference, c, dropout, absolute(x), absolute(w), absolute(b),
                         absolute(dy), absolute(dw0), absolute(db0), want.y);

    const std::string at = join(c.T, " x ", c.N, " x ", c.K);
    EXPECT_TRUE(support::is_product_near(got.y, want.y, magnitude.y)) << at << " y";
    EXPECT_TRUE(support::is_product_near(got.dx, want.dx, magnitude.dx)) << at << " dx";
    EXPECT_TRUE(support::is_product_near(got.dw, want.dw, magnitude.dw)) << at << " dw";
    EXPECT_TRUE(support::is_product_near(got.db, want.db, magnitude.db)) << at << " db";
  }
}

// With integers every sum is exact in f32, whatever its order.
TEST(Linear, OfIntegersIsExactOnBothDevices) {
  for (const auto& device : support::host_devices()) {
    const Tensor x = support::filled(2, 3, DType::kF32, [](auto r, auto c) { return r * 3 + c; });
    const Tensor w = support::filled(2, 3, DType::kF32, [](auto r, auto c) { return c - 2 * r; });
    const Tensor b = support::filled(1, 2, DType::kF32, [](auto, auto c) { return 10 * c; });
    const Tensor y = zeros(2, 2, DType::kF32);

    device->compute().run(&kernels::Kernels::linear_forward, {.x = x, .w = w, .b = b, .y = y});

    const std::vector<float> want = {5, 9, 14, 0};
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(y.data<float>()[i], want[i]) << i;
  }
}

TEST(Linear, RefusesShapesThatDoNotFit) {
  const auto device = tensor::make_reference_device();
  ParameterStore store(*device, DType::kF64);
  const Parameter& w = store.add("fc.weight", Role::kFeedForwardIn, {5, 4}, 4, 5);
  const Parameter& b = store.add("fc.bias", Role::kBias, {6}, 4, 6);
  store.freeze();
  Tape tape(*device, DType::kF64, {});
  const Var narrow = tape.constant(normal(2, 3, DType::kF64, 1));
  const Var right = tape.constant(normal(2, 4, DType::kF64, 1));

  EXPECT_TRUE(
      support::throws_with<InvalidArgument>("linear: fc.weight is f64 (5, 4), but x is f64 (2, 3)",
                                            [&] { (void)linear(narrow, w, nullptr); }));
  EXPECT_TRUE(support::throws_with<InvalidArgument>(
      "linear: the bias of fc.weight is f64 (1, 6), expected 5 entries",
      [&] { (void)linear(right, w, &b); }));
}

}  // namespace
}  // namespace fathom::ops
