// Adam and the learning rate schedules.
#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "core/optim/adam.h"
#include "core/optim/schedule.h"
#include "tests/support/expect_error.h"
#include "tests/support/random_tensor.h"
#include "tests/support/tolerance.h"

namespace fathom::optim {
namespace {

using support::normal;

class EveryMode : public ::testing::TestWithParam<EpsilonMode> {};

TEST_P(EveryMode, FollowsThePlainFormula) {
  const OptimizerConfig config = {.beta1 = 0.8,
                                  .beta2 = 0.95,
                                  .epsilon = 1e-2,  // large, so that the modes differ
                                  .epsilon_mode = GetParam(),
                                  .weight_decay = 0.1};
  const int64_t count = 37;
  ThreadPool pool(1);
  Adam adam(config, count, DType::kF64);
  const Tensor weights = normal(1, count, DType::kF64, 1);
  std::vector<double> w(weights.data<double>(), weights.data<double>() + count), m(37), v(37);
  for (int t = 1; t <= 5; ++t) {
    const Tensor gradient = normal(1, count, DType::kF64, uint64_t(t) + 10, 0.1);
    const double lr = 0.01 * t, clip = 0.7;

    adam.step(pool, weights, gradient, lr, clip);

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
      EXPECT_NEAR(weights.data<double>()[i], w[i], 1e-13) << "update " << t;
    }
    EXPECT_NEAR(adam.update_norm(weights, 0, count, lr), std::sqrt(change_squared),
                0.01 * std::sqrt(change_squared));
    EXPECT_EQ(adam.updates(), t);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, EveryMode,
                         ::testing::Values(EpsilonMode::kFairseq, EpsilonMode::kCorrected));

// ResiDual, Theorem 3.2 (T23): the Frobenius norm of d(update)/d(gradient) at gradient 0.
TEST(Adam, IsIllConditionedAtZeroAsPredicted) {
  const int64_t d = 64;
  for (const double eps : {1e-6, 1e-8}) {
    const double lr = 1e-4, h = 1e-5 * eps;
    ThreadPool pool(1);
    double squares = 0;
    for (int64_t k = 0; k < d; ++k) {
      Tensor ends[2];
      for (const int side : {0, 1}) {
        Adam adam({.epsilon = eps, .epsilon_mode = EpsilonMode::kCorrected}, d, DType::kF64);
        const Tensor gradient = support::zeros(1, d, DType::kF64);
        gradient.data<double>()[k] = side == 0 ? -h : h;
        ends[side] = support::zeros(1, d, DType::kF64);
        adam.step(pool, ends[side], gradient, lr, 1);
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
    ThreadPool pool(threads);
    Adam adam(config, count, dtype);
    const Tensor weights = normal(1, count, dtype, 1);
    for (uint64_t t = 1; t <= 3; ++t)
      adam.step(pool, weights, normal(1, count, dtype, t + 1), 1e-2, 1);
    return weights;
  };
  const Tensor one = run(1, DType::kF32);

  EXPECT_TRUE(support::is_near(one, run(1, DType::kF64)));
  EXPECT_TRUE(support::has_same_bits(run(2, DType::kF32), one));
  EXPECT_TRUE(support::has_same_bits(run(3, DType::kF32), one));
}

TEST(Adam, StartsWithZeroMomentsAndRefusesOtherSizes) {
  ThreadPool pool(1);
  Adam adam({}, 10, DType::kF32);
  EXPECT_EQ(support::norm_of(adam.first()), 0);
  EXPECT_EQ(support::norm_of(adam.second()), 0);
  EXPECT_EQ(adam.updates(), 0);
  EXPECT_EQ(adam.update_norm(normal(1, 10, DType::kF32, 1), 0, 10, 1), 0);
  EXPECT_TRUE(support::throws_with<InvalidArgument>(
      "adam: weights f32 (1, 10) and gradient f32 (1, 9), expected 10 elements",
      [&] { adam.step(pool, normal(1, 10, DType::kF32, 1), normal(1, 9, DType::kF32, 1), 1, 1); }));
}

TEST(SquaredNorms, AreThoseOfEachParameterOnAnyNumberOfThreads) {
  ParameterStore store(DType::kF32);
  store.add("a", Role::kBias, {3});
  store.add("b", Role::kQuery, {300, 250}, 250, 300);  // several chunks
  store.freeze();
  const Tensor flat = normal(1, store.size(), DType::kF32, 1);
  ThreadPool one(1), three(3);

  const std::vector<double> got = squared_norms(one, store, flat);

  ASSERT_EQ(got.size(), 2u);
  for (size_t p = 0; p < 2; ++p) {
    const Parameter& parameter = *store.all()[p];
    const double norm = support::norm_of(flat.columns(parameter.offset, parameter.numel()));
    EXPECT_NEAR(got[p], norm * norm, 1e-12 * norm * norm);
  }
  EXPECT_EQ(squared_norms(three, store, flat), got);
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
