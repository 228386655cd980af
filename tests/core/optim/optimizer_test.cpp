// Adam and the learning rate schedules.
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>

#include <gtest/gtest.h>

#include "core/optim/adam.h"
#include "core/optim/schedule.h"
#include "tests/support/devices.h"
#include "tests/support/expect_error.h"
#include "tests/support/tolerance.h"

namespace fathom::optim {
namespace {

using support::normal;

// Weights of one parameter, N(0, 1), with their optimizer.
struct Weights {
  std::unique_ptr<Device> device;
  int64_t count;
  ParameterStore store;
  std::optional<Adam> adam;

  Weights(const OptimizerConfig& config, int64_t n, DType dtype, int threads = 1)
      : device(dtype == DType::kF32 ? tensor::make_cpu_device(threads)
                                    : tensor::make_reference_device()),
        count(n),
        store(*device, dtype) {
    store.add("w", Role::kBias, {n});
    store.freeze();
    set(normal(1, n, dtype, 1));
    adam.emplace(config, store);
  }
  [[nodiscard]] const Tensor& values() const { return store.all()[0]->value; }
  void set(const Tensor& from) const { device->compute().copy(values(), from); }
  // By a gradient (1, count).
  void step(const Tensor& of_weights, double rate, double scale = 1) {
    const Tensor gradient = support::zeros(1, store.size(), store.wide());
    device->compute().copy(gradient.columns(0, count), of_weights);
    adam->step(gradient, support::update_control(scale), rate);
    adam->count_update();
  }
  [[nodiscard]] double update_norm(double rate) const {
    const Tensor sums = support::zeros(store.chunks().rows(), 1, DType::kF64);
    adam->update_norms(sums, rate);
    double sum = 0;
    for (int64_t k = 0; k < sums.rows(); ++k) sum += sums.data<double>()[k];
    return std::sqrt(sum);
  }
};

class EveryMode : public ::testing::TestWithParam<EpsilonMode> {};

TEST_P(EveryMode, FollowsThePlainFormula) {
  const OptimizerConfig config = {.betas = {0.8, 0.95},
                                  .epsilon = 1e-2,  // large, so that the modes differ
                                  .epsilon_mode = GetParam(),
                                  .weight_decay = 0.1};
  const int64_t count = 37;
  Weights weights(config, count, DType::kF64);
  const double* got = weights.values().data<double>();
  std::vector<double> w(got, got + count), m(37), v(37);
  for (int t = 1; t <= 5; ++t) {
    const Tensor gradient = normal(1, count, DType::kF64, uint64_t(t) + 10, 0.1);
    const double lr = 0.01 * t, clip = 0.7;

    weights.step(gradient, lr, clip);

    double change_squared = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      const double g = clip * gradient.data<double>()[i];
      m[i] = 0.8 * m[i] + 0.2 * g;
      v[i] = 0.95 * v[i] + 0.05 * g * g;
      const double c1 = 1 - std::pow(0.8, t), c2 = 1 - std::pow(0.95, t);
      const double step = GetParam() == EpsilonMode::kFairseq
                              ? lr * std::sqrt(c2) / c1 * m[i] / (std::sqrt(v[i]) + 1e-2)
                              : lr * (m[i] / c1) / (std::sqrt(v[i] / c2) + 1e-2);
      const double change = lr * 0.1 * w[i] + step;
      w[i] -= change;
      change_squared += change * change;
      EXPECT_NEAR(got[i], w[i], 1e-13) << "update " << t;
    }
    EXPECT_NEAR(weights.update_norm(lr), std::sqrt(change_squared),
                1e-9 * std::sqrt(change_squared));
    EXPECT_EQ(weights.adam->updates(), t);
  }
}

TEST_P(EveryMode, TellsTheChangeUnderALargeDecay) {
  Weights weights({.epsilon_mode = GetParam(), .weight_decay = 20}, 37, DType::kF64);
  const Tensor before = support::copy_of(weights.values());

  weights.step(normal(1, 37, DType::kF64, 11, 0.1), 0.01);

  double change_squared = 0;
  for (int64_t i = 0; i < 37; ++i)
    change_squared += std::pow(before.data<double>()[i] - weights.values().data<double>()[i], 2);
  EXPECT_NEAR(weights.update_norm(0.01), std::sqrt(change_squared), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Modes, EveryMode,
                         ::testing::Values(EpsilonMode::kFairseq, EpsilonMode::kCorrected));

// ResiDual, Theorem 3.2 (T23): the Frobenius norm of d(update)/d(gradient) at gradient 0.
TEST(Adam, IsIllConditionedAtZeroAsPredicted) {
  const int64_t d = 64;
  for (const double eps : {1e-6, 1e-8}) {
    const double lr = 1e-4, h = 1e-5 * eps;
    double squares = 0;
    for (int64_t k = 0; k < d; ++k) {
      Tensor ends[2];
      for (const int side : {0, 1}) {
        Weights weights({.epsilon = eps, .epsilon_mode = EpsilonMode::kCorrected}, d, DType::kF64);
        weights.set(support::zeros(1, d, DType::kF64));
        const Tensor gradient = support::zeros(1, d, DType::kF64);
        gradient.data<double>()[k] = side == 0 ? -h : h;
        weights.step(gradient, lr);
        ends[side] = support::copy_of(weights.values());
      }
      for (int64_t i = 0; i < d; ++i) {
        const double slope = (ends[1].data<double>()[i] - ends[0].data<double>()[i]) / (2 * h);
        squares += slope * slope;
      }
    }

    const double predicted = lr * std::sqrt(double(d)) / eps;
    EXPECT_NEAR(std::sqrt(squares), predicted, 1e-3 * predicted);
  }
}

TEST(Adam, InF32EqualsF64AndDoesNotDependOnThreads) {
  const int64_t count = 100000;  // several chunks
  const OptimizerConfig config = {.weight_decay = 0.01};
  const auto run = [&](int threads, DType dtype) {
    Weights weights(config, count, dtype, threads);
    for (uint64_t t = 1; t <= 3; ++t) weights.step(normal(1, count, dtype, t + 1), 1e-2);
    return support::copy_of(weights.values());
  };
  const Tensor one = run(1, DType::kF32);

  EXPECT_TRUE(support::is_near(one, run(1, DType::kF64)));
  EXPECT_TRUE(support::has_same_bits(run(2, DType::kF32), one));
  EXPECT_TRUE(support::has_same_bits(run(3, DType::kF32), one));
}

TEST(Adam, StartsWithZeroMomentsAndRefusesOtherSizes) {
  Weights weights({}, 10, DType::kF32);
  EXPECT_EQ(support::norm_of(weights.adam->first()), 0);
  EXPECT_EQ(support::norm_of(weights.adam->second()), 0);
  EXPECT_EQ(weights.adam->updates(), 0);
  EXPECT_EQ(weights.update_norm(1), 0);
  EXPECT_TRUE(support::throws_with<InvalidArgument>(
      "adam: gradient f32 (1, 9), expected 16 elements",
      [&] { weights.adam->step(normal(1, 9, DType::kF32, 1), support::update_control(), 1); }));
}

struct Rate {
  Schedule schedule;
  int64_t t;
  double want;
};

// lr = 1, warm-up 4 from 0.2, 20 updates in all.
TEST(Schedule, HasItsTableOfValues) {
  const double pi = std::numbers::pi;
  const std::vector<Rate> table = {
      {Schedule::kInverseSqrt, 1, 0.4},
      {Schedule::kInverseSqrt, 3, 0.8},
      {Schedule::kInverseSqrt, 4, 1},
      {Schedule::kInverseSqrt, 16, 0.5},
      {Schedule::kInverseSqrt, 400, 0.1},
      {Schedule::kInverseSqrtW1, 1, 1},
      {Schedule::kInverseSqrtW1, 4, 0.5},
      {Schedule::kInverseSqrtW1, 100, 0.1},
      {Schedule::kHoldInverseSqrt, 1, 1},
      {Schedule::kHoldInverseSqrt, 4, 1},
      {Schedule::kHoldInverseSqrt, 16, 0.5},
      {Schedule::kTFixup, 1, std::sqrt(0.8)},
      {Schedule::kTFixup, 12, 0.5},
      {Schedule::kConstantStep, 1, 1},
      {Schedule::kConstantStep, 3, 1},
      {Schedule::kConstantStep, 4, 0.1},
      {Schedule::kConstantStep, 20, 0.1},
      {Schedule::kCosine, 2, 0.6},
      {Schedule::kCosine, 4, 1},
      {Schedule::kCosine, 8, 0.5 * (1 + std::cos(pi / 4))},
      {Schedule::kCosine, 12, 0.5},
      {Schedule::kCosine, 20, 0},
      {Schedule::kCosine, 30, 0},
      {Schedule::kLinear, 2, 0.6},
      {Schedule::kLinear, 4, 1},
      {Schedule::kLinear, 8, 0.75},
      {Schedule::kLinear, 20, 0},
      {Schedule::kLinear, 30, 0},
  };
  for (const Rate& r : table) {
    const OptimizerConfig config = {
        .learning_rate = 1, .schedule = r.schedule, .warmup_steps = 4, .warmup_start = 0.2};
    EXPECT_NEAR(learning_rate(config, r.t, 20), r.want, 1e-12)
        << "schedule " << int(r.schedule) << ", update " << r.t;
  }
}

TEST(Schedule, WithoutWarmupStartsAtTheFullRate) {
  for (const Schedule schedule : {Schedule::kInverseSqrt, Schedule::kHoldInverseSqrt,
                                  Schedule::kConstantStep, Schedule::kInverseSqrtW1}) {
    const OptimizerConfig config = {
        .learning_rate = 3, .schedule = schedule, .warmup_steps = 0, .warmup_start = 0.2};
    EXPECT_DOUBLE_EQ(learning_rate(config, 1, 20), 3) << int(schedule);
  }
  for (const Schedule schedule : {Schedule::kCosine, Schedule::kLinear}) {
    const OptimizerConfig config = {.learning_rate = 3, .schedule = schedule, .warmup_steps = 0};
    EXPECT_NEAR(learning_rate(config, 10, 20), 1.5, 1e-12) << int(schedule);
  }
}

TEST(Schedule, CountsUpdatesFromOne) {
  EXPECT_TRUE(support::throws_with<InvalidArgument>("learning_rate: updates count from 1, got 0",
                                                    [] { (void)learning_rate({}, 0, 10); }));
}

}  // namespace
}  // namespace fathom::optim
