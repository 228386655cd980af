// Whole models learn: to copy and to reverse unseen sequences, and at depth.
#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "core/decode/greedy.h"
#include "core/decode/translate.h"
#include "tests/core/model/learning_support.h"

namespace fathom::model {
namespace {

// Lengths 3 to 6: there are too few shorter ones to hold any out.
Sequences unseen_sequences() {
  std::set<std::vector<int32_t>> distinct;
  for (data::TokenPair& p : random_pairs(200, kFirst, kVocabulary, 3, 6, 7))
    distinct.insert(p.source);
  return {distinct.begin(), distinct.end()};
}

template <class F>
void expect_learns(int steps, const F& target_of) {
  const Sequences sources = unseen_sequences();
  const auto model = trained({sources.begin(), sources.end()}, steps, target_of);
  const auto device = tensor::make_cpu_device(1);

  const Sequences outputs =
      decode::translate(model->transformer, *device, decode::Greedy(), sources, {});

  size_t right = 0;
  for (size_t i = 0; i < sources.size(); ++i) right += outputs[i] == target_of(sources[i]);
  EXPECT_EQ(right, sources.size());
}

TEST(Transformer, LearnsToCopyUnseenSequencesWithoutAnError) {
  expect_learns(500, [](const std::vector<int32_t>& s) { return s; });
}

TEST(Transformer, LearnsToReverseUnseenSequencesWithoutAnError) {
  expect_learns(700, [](const std::vector<int32_t>& s) { return reversed(s); });
}

class Depth : public ::testing::TestWithParam<const char*> {};

TEST_P(Depth, OfFortyEightAndFortyEightLayersTrains) {
  ModelConfig config = small_config(GetParam(), 48, 48);
  config.width = 16;
  config.heads = 2;
  config.ffn_width = 32;
  Model model(config, DType::kF32);
  const auto device = tensor::make_cpu_device(1);
  const data::PackedBatch batch = pack_all(random_pairs(6, 2, 23, 2, 8, 1), false);

  std::vector<double> losses;
  for (int step = 0; step < 12; ++step) {
    losses.push_back(model.loss(*device, batch));
    ASSERT_TRUE(std::isfinite(losses.back())) << "step " << step;
    model.update(1e-3);
  }

  EXPECT_LT(losses[4], losses[0]);
  EXPECT_LT(losses.back(), losses[4]);
  EXPECT_LT(losses.back(), 0.9 * losses[0]);
}

INSTANTIATE_TEST_SUITE_P(Topologies, Depth, ::testing::Values("pre-ln", "residual"),
                         [](const auto& topology) {
                           return std::string(topology.param) == "residual" ? "ResiDual" : "PreLN";
                         });

}  // namespace
}  // namespace fathom::model
