// Forward statements over stub blocks: how much each block, and the last one, changes the
// representation. Theory tests T1 to T7.
#include <gtest/gtest.h>

#include "tests/core/theory/closed_forms.h"
#include "tests/core/theory/measures.h"
#include "tests/core/theory/stub_stack.h"

namespace fathom::theory {
namespace {

// omega_k^2 between the normalised streams before and after block k.
double omega_squared_of(const StubRun& run, int k) {
  return mean_square_difference(run.normalised(k + 1), run.normalised(k));
}

TEST(ClosedForms, MeanCosineOfOneNormalIsThatOfTwoSigns) {
  for (const double rho : {0.1, 0.5, 0.9})
    EXPECT_NEAR(mean_cosine(rho, 1), 2 / 3.14159265358979323846 * std::asin(rho), 1e-14);
}

TEST(ClosedForms, MeanCosineFollowsItsExpansionAtLargeWidth) {
  for (const double rho : {0.1, 0.7, 0.99})
    EXPECT_NEAR(mean_cosine(rho, 511), rho * (1 - (1 - rho * rho) / (2 * 511)), 2e-6);
}

TEST(ClosedForms, Theorem33IsTheGeneralFormFromAZeroStart) {
  for (int k = 2; k <= 64; ++k)
    EXPECT_NEAR(pre_ln_omega_squared(k), omega_squared(k - 1, 1), 1e-14) << k;
}

TEST(ClosedForms, OmegaAndTheBranchShareAreTheSameInformation) {
  for (const double V : {0.3, 1.0, 24.0}) {
    const double a = branch_share(V, 0.7);
    EXPECT_NEAR(omega_squared(V, 0.7), 2 - 2 * std::sqrt(1 - a * a), 1e-14);
  }
}

TEST(PreLnCollapse, FollowsTheorem33AndCorollary34) {  // T1, T2
  const StubRun run("pre-ln", {}, draw({.v0 = 0}));

  for (int k = 2; k <= 24; ++k) {
    const double omega2 = omega_squared_of(run, k);
    EXPECT_NEAR(omega2 / pre_ln_omega_squared(k), 1, 0.015) << "k = " << k;
    EXPECT_NEAR(omega2 / omega_squared_at_width(k - 1, 1, 512), 1, 0.01) << "k = " << k;
    const double absolute = mean_absolute_difference(run.normalised(k + 1), run.normalised(k));
    EXPECT_NEAR(absolute / (kHalfNormalMean * std::sqrt(pre_ln_omega_squared(k))), 1, 0.008)
        << "k = " << k;
  }
}

TEST(PreLnCollapse, FollowsTheorem33AtWidth64) {  // T1
  const StubRun run("pre-ln", {}, draw({.width = 64, .v0 = 0, .seed = 2}));

  for (int k = 2; k <= 24; ++k)
    EXPECT_NEAR(omega_squared_of(run, k) / pre_ln_omega_squared(k), 1, 0.04) << "k = " << k;
}

TEST(PreLnCollapse, DoesNotDependOnTheScaleOfTheBlocks) {  // T1
  const StubRun run("pre-ln", {}, draw({.blocks = 8, .sigma = 0.3, .v0 = 0, .seed = 3}));

  for (int k = 2; k <= 8; ++k)
    EXPECT_NEAR(omega_squared_of(run, k) / pre_ln_omega_squared(k), 1, 0.015) << "k = " << k;
}

TEST(PreLnCollapse, CountsTheEmbeddingAsPartOfTheStream) {  // T3
  for (const double v0 : {0.25, 4.0}) {
    const StubRun run("pre-ln", {}, draw({.blocks = 12, .tokens = 2000, .v0 = v0, .seed = 4}));

    for (int k = 1; k <= 12; ++k)
      EXPECT_NEAR(omega_squared_of(run, k) / omega_squared(v0 + k - 1, 1), 1, 0.01)
          << "v0 = " << v0 << ", k = " << k;
  }
}

TEST(PreLnCollapse, FallsAsTheInverseSquareRootOfDepth) {  // T4
  const StubRun run("pre-ln", {}, draw({.blocks = 64, .tokens = 500, .v0 = 0, .seed = 5}));
  std::vector<double> log_k, log_omega;
  for (int k = 8; k <= 64; ++k) {
    log_k.push_back(std::log(k));
    log_omega.push_back(std::log(omega_squared_of(run, k)) / 2);
  }

  EXPECT_NEAR(slope(log_k, log_omega), -0.50, 0.01);
}

TEST(PreLnCollapse, LastBlockChangesTheOutputByOmegaN) {  // T7
  const StubRun run("pre-ln", {}, draw({.blocks = 54, .tokens = 600, .v0 = 0, .seed = 6}));

  for (const int N : {12, 18, 24, 36, 54}) {
    const Tensor y = run.stack.final_after(run.pass, N).value();
    const Tensor shorter = run.stack.final_after(run.pass, N - 1).value();
    const double omega = std::sqrt(pre_ln_omega_squared(N));
    EXPECT_NEAR(std::sqrt(mean_square_difference(y, shorter)) / omega, 1, 0.01) << "N = " << N;
    EXPECT_NEAR(mean_absolute_difference(y, shorter) / (kHalfNormalMean * omega), 1, 0.01)
        << "N = " << N;
    EXPECT_NEAR(norm(y) * omega, std::sqrt(mean_square_difference(y, shorter) * double(y.numel())),
                0.01 * norm(y) * omega);
  }
}

TEST(PostLnCollapse, DoesNotHappen) {  // T5
  for (const double sigma : {0.25, 0.5, 1.0, 2.0}) {
    const StubRun run("post-ln", {}, draw({.sigma = sigma, .seed = 7}));
    std::vector<double> blocks, ratios;
    for (int k = 1; k <= 24; ++k) {
      blocks.push_back(k);
      // Normalised here, since the stream before block 1 is the embedding itself.
      const double omega2 = omega_squared_between(run.pass.states[size_t(k - 1)][0].value(),
                                                  run.pass.states[size_t(k)][0].value(), 0, 1000);
      ratios.push_back(omega2 / post_ln_omega_squared(sigma * sigma));
      EXPECT_NEAR(ratios.back(), 1, 0.012) << "sigma = " << sigma << ", k = " << k;
    }
    const double omega2 = post_ln_omega_squared(sigma * sigma) * mean(ratios);
    EXPECT_NEAR(omega2 / post_ln_omega_squared_at_width(sigma * sigma, 512), 1, 0.002)
        << "sigma = " << sigma;
    // The finite width alone makes -0.35 % at sigma = 0.25, so there only the line above can hold;
    // -0.28 % at 0.5, -0.15 % at 1, -0.05 % at 2.
    if (sigma > 0.25) {
      EXPECT_NEAR(mean(ratios), 1, 0.003) << "sigma = " << sigma;
    }
    // Over the whole depth; the noise of this figure has a standard deviation of 0.002.
    EXPECT_NEAR(slope(blocks, ratios) * 24, 0, 0.01) << "sigma = " << sigma;
  }
}

TEST(ResiDualCollapse, StreamThatFeedsTheBlocksIsPostLns) {  // T5
  const Draws draws = draw({.tokens = 50, .seed = 8});
  const StubRun post("post-ln", {}, draws), dual("residual", {{"alpha", "0.5"}}, draws);

  for (int k = 1; k <= 24; ++k)
    EXPECT_EQ(mean_square_difference(dual.normalised(k), post.normalised(k)), 0) << "k = " << k;
  EXPECT_EQ(mean_square_difference(dual.pass.states[24][0].value(), post.pass.y.value()), 0);
}

struct OutputCase {
  const char* dual_start;
  double alpha, sigma, v0;
};
void PrintTo(const OutputCase& c, std::ostream* out) {
  *out << "start " << c.dual_start << ", alpha " << c.alpha << ", sigma " << c.sigma << ", v0 "
       << c.v0;
}
class ResiDualOutput : public testing::TestWithParam<OutputCase> {};

TEST_P(ResiDualOutput, HasTheVarianceCorrelationAndChangeOfTheory) {  // T6
  const auto& [dual_start, alpha, sigma, v0] = GetParam();
  const double f = sigma * sigma, v_dual = std::string(dual_start) == "zero" ? 0 : v0;
  const StubRun run("residual", {{"alpha", join(alpha)}, {"dual_start", dual_start}},
                    draw({.blocks = 54, .tokens = 600, .sigma = sigma, .v0 = v0, .seed = 9}));

  for (const int N : {12, 18, 36, 54}) {
    const DualOutput expected = dual_output(N, f, v0, v_dual, alpha);
    const Tensor y = run.stack.final_after(run.pass, N).value();
    const Tensor shorter = run.stack.final_after(run.pass, N - 1).value();
    const Tensor x = run.pass.states[size_t(N)][0].value();
    // y = alpha x + LN(d), and x has unit variance: E[x LN(d)] = E[x y] - alpha.
    EXPECT_NEAR((mean_product(x, y) - alpha) / expected.correlation, 1, 0.01) << "N = " << N;
    EXPECT_NEAR(mean_square(y) / expected.variance, 1, 0.01) << "N = " << N;
    EXPECT_NEAR(mean_square_difference(y, shorter) / expected.change, 1, 0.01) << "N = " << N;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ResiDualOutput,
                         testing::Values(OutputCase{"embedding", 1, 1, 1},
                                         OutputCase{"embedding", 0.5, 0.5, 4},
                                         OutputCase{"zero", 1, 1, 1}));

TEST(ResiDualOutput, KeepsChangingWhereThatOfPreLnCollapses) {  // T6; the claim of X, theorem 3.6
  const double limit = post_ln_omega_squared(1);
  EXPECT_GT(dual_output(54, 1, 1, 1, 1).change, limit);
  EXPECT_NEAR(dual_output(100000, 1, 1, 1, 1).change, limit, 0.01);
  EXPECT_LT(pre_ln_omega_squared(54), 0.02);
}

}  // namespace
}  // namespace fathom::theory
