// Whole encoder-decoders of 12 layers at initialisation. Theory tests T14 to T17; the 18-layer
// cases are in deep_initial_model_test.cpp.
#include "tests/core/theory/initial_model.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/core/theory/closed_forms.h"
#include "tests/support/layer_statistics.h"

namespace fathom::theory {
namespace {

class InitialPostLn : public testing::TestWithParam<model::InitRule> {};

TEST_P(InitialPostLn, LosesItsGradientInTheDecoderOnly) {  // T14
  const InitialModel& m = initial_model("post-ln", GetParam(), 12);

  EXPECT_NEAR(growth_per_layer(m.decoder_gradient) / cross_attention_factor(m), 1, 0.08);
  EXPECT_NEAR(growth_per_layer(m.encoder_gradient), 1, 0.06);
}

INSTANTIATE_TEST_SUITE_P(Inits, InitialPostLn,
                         testing::Values(model::InitRule::kFairseq, model::InitRule::kXavier));

TEST(InitialResiDual, KeepsAGradientAtTheBottomOfTheDecoder) {  // T15
  const InitialModel& dual = initial_model("residual", model::InitRule::kFairseq, 12);
  const InitialModel& post = initial_model("post-ln", model::InitRule::kFairseq, 12);
  const double lowest = std::ranges::min(dual.decoder_gradient);

  EXPECT_GE(lowest, 0.15 * dual.decoder_gradient.back());
  EXPECT_GE(lowest, 3 * post.decoder_gradient.front());
}

class InitialPreLn : public testing::TestWithParam<model::InitRule> {};

TEST_P(InitialPreLn, CollapsesAsTheMeasuredVariancesPredict) {  // T16
  const InitialModel& m = initial_model("pre-ln", GetParam(), 12, Direction::kForward);

  double sum = 0;
  for (size_t i = 0; i < m.blocks.size(); ++i) {
    const support::ActivationStatistics s = support::statistics_of(m.sums[i]);
    const double ratio = std::pow(s.omega / s.omega_predicted, 2);
    EXPECT_NEAR(ratio, 1, 0.10) << topology::name_of(m.blocks[i]);
    sum += ratio;
  }
  EXPECT_NEAR(sum / double(m.blocks.size()), 1, 0.02);
}

INSTANTIATE_TEST_SUITE_P(Inits, InitialPreLn,
                         testing::Values(model::InitRule::kFairseq, model::InitRule::kXavier));

class InitialLoss : public testing::TestWithParam<const char*> {};

TEST_P(InitialLoss, IsThatOfGaussianLogitsWithTheOutputsVariance) {  // T17
  const bool is_pre_ln = std::string(GetParam()) == "pre-ln";
  const InitialModel& m =
      initial_model(GetParam(), model::InitRule::kFairseq, 12,
                    is_pre_ln ? Direction::kForward : Direction::kForwardAndBackward);

  EXPECT_NEAR(m.nll, std::log(double(kInitialVocabulary)) + m.output_variance / 2, 0.5);
}

INSTANTIATE_TEST_SUITE_P(Topologies, InitialLoss, testing::Values("post-ln", "pre-ln", "residual"));

}  // namespace
}  // namespace fathom::theory
