// Backward statements over stub and linear blocks: what the placement of the norms does to the
// gradient on its way down. Theory tests T8 to T13. "At block k" is dL/d(output of block k).
#include <cstring>

#include <gtest/gtest.h>

#include "core/ops/linear.h"
#include "tests/core/theory/closed_forms.h"
#include "tests/core/theory/measures.h"
#include "tests/core/theory/stub_stack.h"

namespace fathom::theory {
namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.same_shape(b) && a.is_contiguous() && b.is_contiguous() &&
         std::memcmp(a.address(), b.address(), size_t(a.numel() * size_of(a.dtype()))) == 0;
}

// a - factor b, in its own memory.
Tensor difference(const Tensor& a, const Tensor& b, double factor) {
  const Tensor out = support::zeros(a.rows(), a.cols(), a.dtype());
  visit_float(a.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < a.numel(); ++i)
      out.data<T>()[i] = T(double(a.data<T>()[i]) - factor * double(b.data<T>()[i]));
  });
  return out;
}

TEST(PostLnGradient, IsDividedByEveryNormOnItsWay) {  // T8
  for (const double sigma : {0.5, 1.0, 2.0}) {
    const Draws draws = draw({.sigma = sigma, .seed = 11});
    StubRun run("post-ln", {}, draws);
    const std::vector<Tensor> g = run.gradients(draws.seed);

    std::vector<double> ratios;
    for (size_t k = 1; k < g.size(); ++k) {
      ratios.push_back(norm(g[k]) / norm(g[k - 1]) / std::sqrt(1 + sigma * sigma));
      EXPECT_NEAR(ratios.back(), 1, 0.01) << "sigma = " << sigma << ", block " << k;
    }
    EXPECT_NEAR(mean(ratios), 1, 0.005) << "sigma = " << sigma;
    const double through_all = norm(g[0]) / norm(draws.seed);
    EXPECT_NEAR(through_all / post_ln_gradient(1, 24, sigma * sigma, 1), 1, 0.12)
        << "sigma = " << sigma;
  }
}

TEST(PreLnGradient, IsTheSameTensorAtEveryBlock) {  // T9
  for (const double v0 : {1.0, 9.0}) {
    const Draws draws = draw({.sigma = 0.7, .v0 = v0, .seed = 12});
    StubRun run("pre-ln", {}, draws);
    const std::vector<Tensor> g = run.gradients(draws.seed);

    for (size_t k = 1; k < g.size(); ++k) EXPECT_TRUE(same_bits(g[k], g[0])) << "block " << k + 1;
    EXPECT_NEAR(norm(g[0]) / norm(draws.seed) / pre_ln_gradient(24, 0.49, v0), 1, 0.01)
        << "v0 = " << v0;
  }
}

struct GradientCase {
  const char* dual_start;
  double alpha, scale;
};
void PrintTo(const GradientCase& c, std::ostream* out) {
  *out << "start " << c.dual_start << ", alpha " << c.alpha << ", scale " << c.scale;
}
class ResiDualGradient : public testing::TestWithParam<GradientCase> {
 protected:
  static Options options() {
    const GradientCase& c = GetParam();
    return {{"alpha", join(c.alpha)}, {"scale", join(c.scale)}, {"dual_start", c.dual_start}};
  }
};

TEST_P(ResiDualGradient, IsADualPartEqualForAllBlocksPlusAlphaTimesPostLns) {  // T10, in f32
  const Draws draws = draw({.tokens = 200, .seed = 13});
  StubRun dual("residual", options(), draws), post("post-ln", {}, draws);
  const std::vector<Tensor> g = dual.gradients(draws.seed), p = post.gradients(draws.seed);

  const Tensor first = difference(g[0], p[0], GetParam().alpha);
  for (size_t k = 1; k < g.size(); ++k)
    // The rounding of the sum is relative to the sum, which grows towards the top.
    EXPECT_LT(norm(difference(difference(g[k], p[k], GetParam().alpha), first, 1)),
              1e-6 * norm(g[k]))
        << "block " << k + 1;
}

TEST_P(ResiDualGradient, IsExactInDoublePrecision) {  // T10
  const Draws draws =
      draw({.blocks = 18, .tokens = 20, .width = 64, .seed = 14, .dtype = DType::kF64});
  StubRun dual("residual", options(), draws, true), post("post-ln", {}, draws, true);
  const std::vector<Tensor> g = dual.gradients(draws.seed), p = post.gradients(draws.seed);

  const Tensor first = difference(g[0], p[0], GetParam().alpha);
  for (size_t k = 1; k < g.size(); ++k)
    EXPECT_LT(relative_difference(difference(g[k], p[k], GetParam().alpha), first), 1e-14)
        << "block " << k + 1;
}

TEST_P(ResiDualGradient, HasTheNormOfBothPartsTogether) {  // T10
  const auto& [dual_start, alpha, scale] = GetParam();
  const Draws draws = draw({.seed = 15});
  StubRun run("residual", options(), draws);
  const std::vector<Tensor> g = run.gradients(draws.seed);

  const double v_dual = std::string(dual_start) == "zero" ? 0 : 1;
  for (int k = 1; k <= 24; ++k)
    EXPECT_NEAR(
        norm(g[size_t(k - 1)]) / norm(draws.seed) / dual_gradient(k, 24, 1, 1, v_dual, alpha), 1,
        0.01)
        << "block " << k;
}

INSTANTIATE_TEST_SUITE_P(Cases, ResiDualGradient,
                         testing::Values(GradientCase{"embedding", 1, 1},
                                         GradientCase{"embedding", 0.5, 0.05},
                                         GradientCase{"zero", 1, 1}));

TEST(ResiDualGradient, DualPartIsPreLnsGradient) {  // T10
  const Draws draws =
      draw({.blocks = 18, .tokens = 20, .width = 64, .seed = 16, .dtype = DType::kF64});
  StubRun dual("residual", {}, draws, true), post("post-ln", {}, draws, true),
      pre("pre-ln", {}, draws, true);
  const std::vector<Tensor> g = dual.gradients(draws.seed), p = post.gradients(draws.seed),
                            q = pre.gradients(draws.seed);

  // Pre-LN's last norm has eps 1e-5, the dual norm 1e-7: 1e-5 / (2 * 19) apart.
  EXPECT_LT(relative_difference(difference(g[0], p[0], 1), q[0]), 1e-6);
}

TEST(ResiDualScale, ChangesNothingButForTheEpsOfTheDualNorm) {  // T11
  const double s = 0.05, alpha = 1, dual_variance = 13;
  const Draws draws = draw({.blocks = 12, .tokens = 20, .seed = 17, .dtype = DType::kF64});
  StubRun unscaled("residual", {}, draws, true),
      scaled("residual", {{"scale", "0.05"}}, draws, true), post("post-ln", {}, draws, true);

  // Relative to LN(d), the part that the scale may touch.
  const Tensor d = difference(unscaled.pass.y.value(), post.pass.y.value(), alpha);
  const double change =
      norm(difference(scaled.pass.y.value(), unscaled.pass.y.value(), 1)) / norm(d);
  const std::vector<Tensor> g = unscaled.gradients(draws.seed), h = scaled.gradients(draws.seed),
                            p = post.gradients(draws.seed);

  const double expected = 1e-7 / (2 * s * s * dual_variance);  // 1.5e-6
  EXPECT_LT(change, 2e-6);
  EXPECT_NEAR(change / expected, 1, 0.05);
  for (size_t k = 0; k < g.size(); ++k) {
    const double of_dual_part =
        norm(difference(h[k], g[k], 1)) / norm(difference(g[k], p[k], alpha));
    EXPECT_LT(of_dual_part, 2e-6) << "block " << k + 1;
    EXPECT_NEAR(of_dual_part / expected, 1, 0.05) << "block " << k + 1;
  }
}

TEST(ResiDualScale, ChangesNothingInSinglePrecision) {  // T11
  const Draws draws = draw({.blocks = 12, .tokens = 200, .seed = 18});
  StubRun unscaled("residual", {}, draws), scaled("residual", {{"scale", "0.05"}}, draws);
  EXPECT_LT(relative_difference(scaled.pass.y.value(), unscaled.pass.y.value()), 2e-6);

  const std::vector<Tensor> g = unscaled.gradients(draws.seed), h = scaled.gradients(draws.seed);
  for (size_t k = 0; k < g.size(); ++k)
    EXPECT_LT(relative_difference(h[k], g[k]), 2e-6) << "block " << k + 1;
}

// dL/d(stream) before each of N linear blocks W ~ N(0, 1/d) and after the last, relative to the
// seed. A zero leaf added to the stream is where the gradient can be read.
std::vector<double> stream_gradients_of_linear_blocks(const std::string& topology) {
  constexpr int kBlocks = 24;
  constexpr int64_t kWidth = 512, kTokens = 256;
  const Draws draws = draw({.blocks = 0, .tokens = kTokens, .width = kWidth, .seed = 19});
  const auto device = tensor::make_cpu_device(1);
  ParameterStore store(*device, DType::kF32);
  std::vector<const Parameter*> weights;
  for (int k = 1; k <= kBlocks; ++k)
    weights.push_back(&store.add(join("w", k), Role::kFeedForwardOut, {kWidth, kWidth}));
  store.freeze();
  const Tensor flat = support::zeros(1, store.size(), DType::kF32);
  store.bind_gradients(flat);
  for (const Parameter* w : weights) {
    const PhiloxStream stream(20, w->name);
    for (int64_t i = 0; i < w->numel(); ++i)
      w->value.data<float>()[i] = float(stream.normal(uint64_t(i)) / std::sqrt(double(kWidth)));
  }
  const StubStack stack(*device, topology, {}, kBlocks, kWidth);
  Tape tape(*device, DType::kF32, {});
  const Tensor zeros = support::zeros(kTokens, kWidth, DType::kF32);

  std::vector<Var> taps;
  const auto tap = [&](topology::Streams streams) {
    taps.push_back(tape.leaf(zeros));
    streams[0] = ops::add_scaled(streams[0], taps.back());
    return streams;
  };
  topology::Streams streams = tap(stack.topology().start(tape.leaf(draws.embedding)));
  for (int k = 1; k <= kBlocks; ++k) {
    const Var u = stack.topology().in(streams, stack.context(k));
    const Var o = ops::linear(u, *weights[size_t(k - 1)], nullptr);
    streams = tap(stack.topology().out(streams, o, stack.context(k)));
  }
  tape.backward(stack.topology().final(streams), draws.seed);

  std::vector<double> norms;
  for (const Var& v : taps) norms.push_back(norm(v.grad()) / norm(draws.seed));
  return norms;
}

TEST(PostLnGradient, DoesNotDecayOverLinearBlocks) {  // T12
  const std::vector<double> g = stream_gradients_of_linear_blocks("post-ln");

  EXPECT_NEAR(g.front(), 1, 0.15);
  EXPECT_NEAR(std::pow(g.front(), 1.0 / 24), 1, 0.006);
}

TEST(PreLnGradient, FallsAsTheStreamGrowsOverLinearBlocks) {  // T13
  const std::vector<double> g = stream_gradients_of_linear_blocks("pre-ln");

  for (int k = 1; k <= 25; ++k)
    EXPECT_NEAR(g[size_t(k - 1)] * std::sqrt(double(k)), 1, 0.03) << "block " << k;
}

}  // namespace
}  // namespace fathom::theory
