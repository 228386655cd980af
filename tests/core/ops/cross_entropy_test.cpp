#include "core/ops/cross_entropy.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/grad_check.h"
#include "tests/support/tolerance.h"

namespace fathom::ops {
namespace {

using support::normal;
using support::Rows;

struct Data {
  Rows rows;
  Tensor x;
  std::vector<int32_t> targets;
  std::unique_ptr<Device> home = tensor::make_reference_device();
  ParameterStore store;
  const Parameter* w;
  Tensor gradient;

  Data(Rows r, int64_t V, int64_t C, DType dtype)
      : rows(std::move(r)),
        x(rows.normal(C, dtype, 1)),
        targets(rows.tokens(V, 2)),
        store(*home, dtype),
        w(&store.add("output.weight", Role::kOutput, {V, C}, C, V)) {
    store.freeze();
    const Tensor values = normal(V, C, dtype, 3, 0.5);
    std::memcpy(w->value.address(), values.address(), size_t(V * C * size_of(dtype)));
    gradient = support::zeros(1, store.size(), dtype);
    store.bind_gradients(gradient);
  }
};

struct Result {
  Tensor nll, smooth, dx, dw;
};

Result run(Data& d, Device& device, double smoothing, double weight, autograd::Mode mode = {}) {
  Tape tape(device, d.x.dtype(), mode);
  std::memset(d.gradient.address(), 0, size_t(d.gradient.numel() * size_of(d.x.dtype())));
  const Var x = tape.leaf(d.x);
  const TokenLosses losses =
      linear_cross_entropy(x, *d.w, support::integers(d.targets), smoothing, weight);
  Result r = {support::copy_of(losses.nll), support::copy_of(losses.smooth), {}, {}};
  if (!mode.recording) return r;
  tape.backward(losses.loss);
  r.dx = support::copy_of(x.grad());
  r.dw = support::copy_of(d.w->grad);
  return r;
}

TEST(LinearCrossEntropy, GradientMatchesCentralDifferences) {
  for (const auto& [T, V, C, smoothing] :
       {std::tuple{5, 7, 3, 0.1}, {1, 23, 4, 0.0}, {130, 5, 2, 0.3}, {3, 2, 5, 0.1}}) {
    Data d(Rows({T}), V, C, DType::kF64);
    const double weight = 0.37;
    const support::Loss loss = [&](Tape& tape, const std::vector<Var>& in) {
      const TokenLosses l =
          linear_cross_entropy(in[0], *d.w, support::integers(d.targets), smoothing, weight);
      double sum = 0;
      for (int64_t t = 0; t < T; ++t) sum += weight * l.smooth.data<double>()[t];
      if (tape.is_recording()) tape.backward(l.loss);
      return sum;
    };

    EXPECT_TRUE(support::loss_gradients_match(loss, {d.x}, &d.store)) << T << " rows, V " << V;
  }
}

// Two entries of equal logits: nll = ln 2 whatever the target; fairseq's formula then gives
// (1 - e - e_i) ln 2 + e_i 2 ln 2 with e_i = e, that is ln 2 for every e.
TEST(LinearCrossEntropy, OfEqualLogitsIsTheLogarithmOfTheVocabulary) {
  for (const int64_t V : {2, 33, 1000}) {
    for (const bool is_cpu : {false, true}) {
      const auto device = is_cpu ? tensor::make_cpu_device(1) : tensor::make_reference_device();
      Data d(Rows({3}), V, 4, DType::kF32);
      std::memset(d.w->value.address(), 0, size_t(V * 4 * 4));

      const Result r = run(d, *device, 0.1, 1);

      for (int t = 0; t < 3; ++t) {
        EXPECT_NEAR(r.nll.data<float>()[t], std::log(double(V)), 2e-6);
        EXPECT_NEAR(r.smooth.data<float>()[t], std::log(double(V)), 1e-5);
      }
    }
  }
}

// The definition, written out over all logits.
TEST(LinearCrossEntropy, SmoothsAsFairseqDoes) {
  const int64_t T = 4, V = 9, C = 3;
  const double e = 0.2, e_i = e / double(V - 1);
  Data d(Rows({int32_t(T)}), V, C, DType::kF64);

  const auto device = tensor::make_reference_device();
  const Result r = run(d, *device, e, 1);

  for (int64_t t = 0; t < T; ++t) {
    std::vector<double> logits(static_cast<size_t>(V));
    double total = 0, all = 0;
    for (int64_t v = 0; v < V; ++v) {
      for (int64_t c = 0; c < C; ++c)
        logits[size_t(v)] += d.x.row<double>(t)[c] * d.w->value.row<double>(v)[c];
      total += std::exp(logits[size_t(v)]);
    }
    for (const double z : logits) all -= z - std::log(total);
    const double nll = std::log(total) - logits[size_t(d.targets[size_t(t)])];
    EXPECT_NEAR(r.nll.data<double>()[t], nll, 1e-12);
    EXPECT_NEAR(r.smooth.data<double>()[t], (1 - e - e_i) * nll + e_i * all, 1e-12);
  }
}

TEST(LinearCrossEntropy, OnTheCpuEqualsTheReferenceAtOddSizes) {
  const auto reference = tensor::make_reference_device();
  const auto cpu = tensor::make_cpu_device(1);
  for (const auto& [T, V, C] : {std::tuple{1, 20, 33},
                                {31, 33, 20},
                                {33, 1000, 31},
                                {1000, 33, 20},
                                {129, 513, 8},
                                {128, 7, 1000},
                                {257, 1025, 5}}) {
    Data d(Rows({T}), V, C, DType::kF32);

    const Result want = run(d, *reference, 0.1, 0.01), got = run(d, *cpu, 0.1, 0.01);

    const std::string at = join(T, " x ", V, " x ", C);
    EXPECT_TRUE(support::is_near(got.nll, want.nll)) << at;
    EXPECT_TRUE(support::is_near(got.smooth, want.smooth)) << at;
    const double whole = std::hypot(support::norm_of(want.dx), support::norm_of(want.dw));
    EXPECT_TRUE(support::is_gradient_near(got.dx, want.dx, whole)) << at;
    EXPECT_TRUE(support::is_gradient_near(got.dw, want.dw, whole)) << at;
  }
}

TEST(LinearCrossEntropy, SurvivesLogitsFarOutsideTheRangeOfExp) {
  for (const bool is_cpu : {false, true}) {
    const auto device = is_cpu ? tensor::make_cpu_device(1) : tensor::make_reference_device();
    Data d(Rows({2}), 11, 1, DType::kF32);
    for (int v = 0; v < 11; ++v) d.w->value.data<float>()[v] = float(100 * v);
    d.x.data<float>()[0] = 1;
    d.x.data<float>()[1] = -1;
    d.targets = {10, 3};

    const Result r = run(d, *device, 0, 1);

    EXPECT_NEAR(r.nll.data<float>()[0], 0, 1e-6);
    EXPECT_NEAR(r.nll.data<float>()[1], 300, 1e-3);
  }
}

TEST(LinearCrossEntropy, GivesTheSameBitsOnAnyNumberOfThreads) {
  Data d(Rows({300}), 1300, 24, DType::kF32);
  const auto one = tensor::make_cpu_device(1);
  const Result want = run(d, *one, 0.1, 0.01);
  for (const int threads : {2, 3}) {
    const auto many = tensor::make_cpu_device(threads);

    const Result got = run(d, *many, 0.1, 0.01);

    EXPECT_TRUE(support::has_same_bits(got.nll, want.nll)) << threads;
    EXPECT_TRUE(support::has_same_bits(got.smooth, want.smooth)) << threads;
    EXPECT_TRUE(support::has_same_bits(got.dx, want.dx)) << threads;
    EXPECT_TRUE(support::has_same_bits(got.dw, want.dw)) << threads;
  }
}

TEST(LinearCrossEntropy, BatchInvariantIgnoresTheOtherRows) {
  const auto device = tensor::make_cpu_device(2);
  const autograd::Mode mode = {.recording = false, .batch_invariant = true, .training = false};
  for (const auto& [V, C] : {std::pair{33, 21}, {1000, 64}, {1025, 256}}) {
    const std::vector<int32_t> lengths = {3, 127, 1, 33, 70};
    Data together(Rows(lengths), V, C, DType::kF32);
    const Result all = run(together, *device, 0.1, 1, mode);
    for (size_t i = 0; i < lengths.size(); ++i) {
      Data alone(Rows({lengths[i]}, {int32_t(i) + 7}), V, C, DType::kF32);

      const Result one = run(alone, *device, 0.1, 1, mode);

      const int64_t begin = together.rows.segments.begin[i];
      EXPECT_TRUE(support::has_same_bits(one.nll, all.nll.columns(begin, lengths[i]))) << V << i;
      EXPECT_TRUE(support::has_same_bits(one.smooth, all.smooth.columns(begin, lengths[i])))
          << V << i;
    }
  }
}

TEST(LinearCrossEntropy, CarriesNanToLossAndGradient) {
  for (const bool is_cpu : {false, true}) {
    const auto device = is_cpu ? tensor::make_cpu_device(1) : tensor::make_reference_device();
    Data d(Rows({5}), 20, 3, DType::kF32);
    d.x.row<float>(2)[1] = std::numeric_limits<float>::quiet_NaN();

    const Result r = run(d, *device, 0.1, 1);

    for (int t = 0; t < 5; ++t) {
      EXPECT_EQ(std::isnan(r.nll.data<float>()[t]), t == 2) << device->name();
      EXPECT_EQ(std::isnan(r.smooth.data<float>()[t]), t == 2) << device->name();
      EXPECT_EQ(std::isnan(r.dx.row<float>(t)[0]), t == 2) << device->name();
    }
    EXPECT_TRUE(std::isnan(r.dw.data<float>()[0])) << device->name();
  }
}

TEST(LinearCrossEntropy, RefusesShapesThatDoNotFit) {
  const auto device = tensor::make_reference_device();
  Data d(Rows({2}), 6, 3, DType::kF64);
  Tape tape(*device, DType::kF64, {});
  const Var x = tape.constant(d.x), wide = tape.constant(normal(2, 4, DType::kF64, 1));
  const Tensor right = support::integers({1, 5}), one = support::integers({1});
  const auto refuses = [&](const std::string& part, const Var& at, const Tensor& targets) {
    return support::throws_with<InvalidArgument>(
        part, [&] { (void)linear_cross_entropy(at, *d.w, targets, 0.1, 1); });
  };

  EXPECT_TRUE(refuses("1 targets for 2 rows", x, one));
  EXPECT_TRUE(refuses("output.weight is f64 (6, 3), but x is f64 (2, 4)", wide, right));
}

}  // namespace
}  // namespace fathom::ops
