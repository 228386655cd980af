// Whole models learn: to copy and to reverse unseen sequences, and at depth; and what they decode.
#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "core/data/tokenizer.h"
#include "core/decode/greedy.h"
#include "tests/core/model/model_support.h"
#include "tests/support/expect_error.h"

namespace fathom::model {
namespace {

using Sequences = std::vector<std::vector<int32_t>>;

constexpr int32_t kFirst = 2, kVocabulary = 12;

ModelConfig task_config() {
  ModelConfig c = small_config("residual", 1, 1);
  c.width = 32;
  c.heads = 4;
  c.ffn_width = 64;
  c.vocabulary_size = kVocabulary;
  return c;
}

// A model trained on `target_of` random sequences of 1 to 6 tokens, none of them in `held_out`.
template <class F>
std::unique_ptr<Model> trained(const std::set<std::vector<int32_t>>& held_out, int steps,
                               const F& target_of) {
  auto model = std::make_unique<Model>(task_config(), DType::kF32);
  const auto device = tensor::make_cpu_device(1);
  for (int step = 1; step <= steps; ++step) {
    std::vector<data::TokenPair> pairs;
    for (data::TokenPair& p : random_pairs(64, kFirst, kVocabulary, 1, 6, uint64_t(step) + 100)) {
      if (held_out.contains(p.source)) continue;
      p.target = target_of(p.source);
      pairs.push_back(std::move(p));
    }
    model->loss(*device, pack_all(pairs, false), {}, 0);
    const double rate = 4e-3 * std::min({1.0, step / 40.0, 2.0 * (steps + 1 - step) / steps});
    model->update(rate);
  }
  return model;
}

// Lengths 3 to 6: of the shorter ones too few exist to hold any back.
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

  const Sequences outputs = decode::greedy_decode(model->transformer, *device, sources);

  size_t right = 0;
  for (size_t i = 0; i < sources.size(); ++i) right += outputs[i] == target_of(sources[i]);
  EXPECT_EQ(right, sources.size());
}

std::vector<int32_t> reversed(std::vector<int32_t> tokens) {
  std::reverse(tokens.begin(), tokens.end());
  return tokens;
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

// One half-trained model for all tests of decoding: it makes mistakes and ends at various lengths.
class GreedyDecode : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = trained({}, 120, reversed); }
  static void TearDownTestSuite() { model_.reset(); }
  static Transformer& model() { return model_->transformer; }
  static Sequences sources() {
    Sequences all;
    for (data::TokenPair& p : random_pairs(70, kFirst, kVocabulary, 1, 9, 77))
      all.push_back(p.source);
    return all;
  }
  // The definition: the whole prefix again for every token, no cache, one sentence alone.
  static std::vector<int32_t> naive(const std::vector<int32_t>& source, int64_t limit) {
    const auto device = tensor::make_cpu_device(1);
    std::vector<int32_t> target;
    while (int64_t(target.size()) < limit) {
      const data::PackedBatch batch = pack_all({{source, target}}, false);
      Tape tape(*device, DType::kF32,
                {.recording = false, .batch_invariant = true, .training = false});
      const DeviceBatch rows = upload(tape, batch, kVocabulary);
      const Var decoded =
          model().decode(tape, rows.target.tokens, rows.target.position, rows.target.longest,
                         {.segments = rows.target.segments(),
                          .causal = true,
                          .memory = model().encode(tape, rows.source),
                          .memory_segments = rows.source.segments()});
      const Tensor logits = model().logits(decoded).value();
      const float* z = logits.row<float>(logits.rows() - 1);
      const int32_t best = int32_t(std::max_element(z, z + logits.cols()) - z);
      if (best == data::kEndOfSentence) break;
      target.push_back(best);
    }
    return target;
  }

 private:
  static inline std::unique_ptr<Model> model_;
};

TEST_F(GreedyDecode, IsTheBestTokenAfterEveryPrefix) {
  const auto device = tensor::make_cpu_device(1);

  const Sequences outputs = decode::greedy_decode(model(), *device, sources());

  std::set<size_t> lengths;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int64_t source_length = int64_t(sources()[i].size()) + 1;
    EXPECT_EQ(outputs[i], naive(sources()[i], int64_t(1.2 * double(source_length)) + 10)) << i;
    lengths.insert(outputs[i].size());
  }
  EXPECT_GT(lengths.size(), 3u) << "outputs of few lengths prove little";
}

TEST_F(GreedyDecode, DoesNotDependOnTheBatch) {
  const auto device = tensor::make_cpu_device(2);
  Sequences order = sources();
  const Sequences together = decode::greedy_decode(model(), *device, order);
  std::reverse(order.begin(), order.end());

  Sequences backwards = decode::greedy_decode(model(), *device, order);
  std::reverse(backwards.begin(), backwards.end());

  EXPECT_EQ(backwards, together);
  for (size_t i = 0; i < order.size(); ++i)
    EXPECT_EQ(decode::greedy_decode(model(), *device, {sources()[i]})[0], together[i]) << i;
}

TEST_F(GreedyDecode, TurnsEmptySourcesIntoEmptyTargetsInPlace) {
  const auto device = tensor::make_cpu_device(1);
  const Sequences some = sources();

  const Sequences outputs = decode::greedy_decode(model(), *device, {{}, some[0], {}, some[1], {}});

  ASSERT_EQ(outputs.size(), 5u);
  const Sequences alone = decode::greedy_decode(model(), *device, {some[0], some[1]});
  EXPECT_EQ(outputs, (Sequences{{}, alone[0], {}, alone[1], {}}));
  EXPECT_TRUE(decode::greedy_decode(model(), *device, {}).empty());
  EXPECT_EQ(decode::greedy_decode(model(), *device, {{}}), Sequences{{}});
}

TEST_F(GreedyDecode, StopsAtTheLimitOfLength) {
  const auto device = tensor::make_cpu_device(1);
  for (const decode::GreedyOptions options :
       {decode::GreedyOptions{0.5, 1}, decode::GreedyOptions{0, 3}, decode::GreedyOptions{1, 0}}) {
    const Sequences outputs = decode::greedy_decode(model(), *device, sources(), options);

    size_t at_limit = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int64_t limit =
          int64_t(options.max_length_a * double(sources()[i].size() + 1)) + options.max_length_b;
      EXPECT_LE(int64_t(outputs[i].size()), limit) << i;
      EXPECT_EQ(outputs[i], naive(sources()[i], limit)) << i;
      at_limit += int64_t(outputs[i].size()) == limit;
    }
    EXPECT_GT(at_limit, 0u);
  }
}

TEST_F(GreedyDecode, OfNoTokensAtAllIsEmpty) {
  const auto device = tensor::make_cpu_device(1);

  const Sequences outputs = decode::greedy_decode(model(), *device, {{2, 3}, {4}}, {0, 0});

  EXPECT_EQ(outputs, (Sequences{{}, {}}));
}

TEST_F(GreedyDecode, RefusesAModelWithoutSource) {
  const auto device = tensor::make_cpu_device(1);
  Transformer decoder(small_config("pre-ln", 0, 1), *device, DType::kF32);

  EXPECT_TRUE(support::throws_with<InvalidArgument>(
      "greedy_decode: a decoder-only model has no source to translate",
      [&] { (void)decode::greedy_decode(decoder, *device, {{2}}); }));
}

}  // namespace
}  // namespace fathom::model
