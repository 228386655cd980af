// Kernels with learned weights: their formulas, the cpu device against the reference, threads.
#include <gtest/gtest.h>

#include "tests/core/kernels/kernel_support.h"
#include "tests/support/random_tensor.h"
#include "tests/support/tolerance.h"

namespace fathom::kernels {
namespace {

using support::normal;
using support::zeros;

struct Size {
  int64_t rows, cols;
};
constexpr Size kSizes[] = {{1, 20}, {31, 33}, {33, 1}, {1000, 20}, {3, 1000}};

TEST(AddWeighted, SetsOrAddsTheProductWithOneOfTheWeights) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const auto& device : devices_for(dtype)) {
      for (const Size& size : kSizes) {
        const int64_t T = size.rows, C = size.cols;
        const Tensor x = normal(T, C, dtype, 1), weights = normal(1, 5, dtype, 2),
                     before = normal(T, C, dtype, 3), set = zeros(T, C, dtype),
                     added = support::copy_of(before), over = support::copy_of(x);

        Context& context = device->compute();
        context.run(&Kernels::add_weighted, {.x = x, .weights = weights, .y = set, .index = 3});
        context.run(&Kernels::add_weighted,
                    {.x = x, .weights = weights, .y = added, .index = 3, .accumulate = true});
        context.run(&Kernels::add_weighted, {.x = over, .weights = weights, .y = over, .index = 3});

        const double w = support::element(weights, 0, 3);
        const auto want = [&](const Tensor* start) {
          return support::filled(T, C, dtype, [&](int64_t r, int64_t c) {
            return (start ? support::element(*start, r, c) : 0) + w * support::element(x, r, c);
          });
        };
        EXPECT_TRUE(support::is_near(set, want(nullptr))) << device->name() << set;
        EXPECT_TRUE(support::is_near(added, want(&before))) << device->name() << set;
        EXPECT_TRUE(support::has_same_bits(over, set)) << device->name() << set;
      }
    }
  }
}

TEST(WeightGradient, AddsTheInnerProductToOneOfTheWeights) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const auto& device : devices_for(dtype)) {
      for (const Size& size : kSizes) {
        const int64_t T = size.rows, C = size.cols;
        const Tensor x = normal(T, C, dtype, 1), dy = normal(T, C, dtype, 2),
                     got = normal(1, 5, dtype, 3), want = support::copy_of(got);
        double sum = 0, absolute = 0;
        for (int64_t r = 0; r < T; ++r)
          for (int64_t c = 0; c < C; ++c) {
            const double term = support::element(dy, r, c) * support::element(x, r, c);
            sum += term;
            absolute += std::abs(term);
          }
        store(want, 0, 2, support::element(want, 0, 2) + sum);

        device->compute().run(&Kernels::weight_gradient,
                              {.dy = dy, .x = x, .dweights = got, .index = 2});

        const double epsilon = support::tolerance(dtype).epsilon;
        EXPECT_TRUE(support::is_within(
            got, want,
            [&](int64_t, int64_t c) { return c == 2 ? 8 * epsilon * (1 + absolute) : 0; }))
            << device->name() << T << " x " << C;
      }
    }
  }
}

TEST(ScaleColumns, IsItsFormulaForwardAndBackward) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const auto& device : devices_for(dtype)) {
      for (const Size& size : kSizes) {
        const int64_t T = size.rows, C = size.cols;
        const Tensor x = normal(T, C, dtype, 1), gain = normal(1, C, dtype, 2),
                     dy = normal(T, C, dtype, 3), y = zeros(T, C, dtype), dx = zeros(T, C, dtype),
                     dgain = normal(1, C, dtype, 4), before = support::copy_of(dgain);

        Context& context = device->compute();
        context.run(&Kernels::scale_columns, {.x = x, .gain = gain, .y = y});
        context.run(&Kernels::scale_columns_backward,
                    {.dy = dy, .x = x, .gain = gain, .dx = dx, .dgain = dgain});

        const auto product = [&](const Tensor& a) {
          return support::filled(T, C, dtype, [&](int64_t r, int64_t c) {
            return support::element(a, r, c) * support::element(gain, 0, c);
          });
        };
        EXPECT_TRUE(support::is_near(y, product(x))) << device->name() << y;
        EXPECT_TRUE(support::is_near(dx, product(dy))) << device->name() << y;
        std::vector<double> sizes;
        const Tensor want = support::filled(1, C, dtype, [&](int64_t, int64_t c) {
          double sum = support::element(before, 0, c), absolute = 1;
          for (int64_t r = 0; r < T; ++r) {
            const double term = support::element(dy, r, c) * support::element(x, r, c);
            sum += term;
            absolute += std::abs(term);
          }
          sizes.push_back(absolute);
          return sum;
        });
        const double epsilon = support::tolerance(dtype).epsilon;
        EXPECT_TRUE(support::is_within(
            dgain, want, [&](int64_t, int64_t c) { return 8 * epsilon * sizes[size_t(c)]; }))
            << device->name() << y;
      }
    }
  }
}

TEST(WeightedKernels, GiveTheSameBitsOnAnyNumberOfThreads) {
  const int64_t T = 1000, C = 37;
  const auto run = [&](Device& device) {
    const Tensor x = normal(T, C, DType::kF32, 1), dy = normal(T, C, DType::kF32, 2),
                 weights = normal(1, 3, DType::kF32, 3), gain = normal(1, C, DType::kF32, 4);
    std::vector<Tensor> out = {support::copy_of(x), zeros(1, 3, DType::kF32),
                               zeros(T, C, DType::kF32), zeros(T, C, DType::kF32),
                               zeros(1, C, DType::kF32)};
    Context& context = device.compute();
    context.run(&Kernels::add_weighted,
                {.x = dy, .weights = weights, .y = out[0], .index = 1, .accumulate = true});
    context.run(&Kernels::weight_gradient, {.dy = dy, .x = x, .dweights = out[1], .index = 1});
    context.run(&Kernels::scale_columns, {.x = x, .gain = gain, .y = out[2]});
    context.run(&Kernels::scale_columns_backward,
                {.dy = dy, .x = x, .gain = gain, .dx = out[3], .dgain = out[4]});
    return out;
  };
  const std::vector<Tensor> want = run(*tensor::make_cpu_device(1));
  for (const int threads : {2, 3}) {
    const std::vector<Tensor> got = run(*tensor::make_cpu_device(threads));
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(support::has_same_bits(got[i], want[i])) << threads << " threads, tensor " << i;
  }
}

TEST(WeightedKernels, InBf16AreTheFormulaInF32RoundedOnce) {
  const auto device = tensor::make_reference_device();
  const Tensor x = normal(9, 13, DType::kBF16, 1), weights = normal(1, 3, DType::kF32, 2),
               gain = normal(1, 13, DType::kF32, 3), y = zeros(9, 13, DType::kBF16),
               wide = zeros(9, 13, DType::kF32), scaled = zeros(9, 13, DType::kBF16);

  device->compute().run(&Kernels::add_weighted, {.x = x, .weights = weights, .y = y, .index = 1});
  device->compute().run(&Kernels::add_weighted,
                        {.x = x, .weights = weights, .y = wide, .index = 1});
  device->compute().run(&Kernels::scale_columns, {.x = x, .gain = gain, .y = scaled});

  for (int64_t r = 0; r < 9; ++r)
    for (int64_t c = 0; c < 13; ++c) {
      const float v = float(support::element(x, r, c));
      const float product = v * weights.data<float>()[1];
      EXPECT_EQ(float(support::element(wide, r, c)), product);
      EXPECT_EQ(float(support::element(y, r, c)), nearest_bf16(product));
      EXPECT_EQ(float(support::element(scaled, r, c)), nearest_bf16(v * gain.data<float>()[c]));
    }
}

}  // namespace
}  // namespace fathom::kernels
