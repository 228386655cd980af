// Recomputing activations: the same bits, the same order of ready(), a fraction of the memory.
#include <gtest/gtest.h>

#include "tests/core/model/model_support.h"
#include "tests/support/tolerance.h"

namespace fathom::model {
namespace {

constexpr kernels::DropoutStep kStep = {.seed = 1, .step = 2};

// What an observer saw: blocks in order, and their outputs.
class Record final : public BlockObserver {
 public:
  void on_block(const topology::BlockContext& block, const Tensor& x, const Tensor& o,
                const Tensor& next) override {
    blocks.push_back(topology::name_of(block));
    for (const Tensor& t : {x, o, next}) tensors.push_back(support::copy_of(t));
  }
  std::vector<std::string> blocks;
  std::vector<Tensor> tensors;
};

struct Step {
  double loss = 0;
  Tensor gradient;
  std::vector<std::string> ready;
  Record seen;
};

class Recomputation : public ::testing::TestWithParam<std::string> {
 protected:
  static ModelConfig config(int encoder_layers) {
    ModelConfig c = small_config(GetParam(), encoder_layers, 3);
    c.width = 24;
    c.heads = 3;
    c.ffn_width = 50;
    c.vocabulary_size = 90;
    c.dropout = 0.2;
    c.attention_dropout = 0.1;
    c.activation_dropout = 0.15;
    return c;
  }
  static Step step(ModelConfig c, DType dtype, bool recomputes, const data::PackedBatch& batch) {
    c.recompute_activations = recomputes;
    Model model(c, dtype, 3);
    const Tensor& weights = model.transformer.parameters().weights();
    const Tensor noise = support::normal(1, weights.numel(), dtype, 5, 0.1);
    model.home->compute().run(&kernels::Kernels::add_scaled,
                              {.x = weights, .z = noise, .y = weights});
    Step out;
    Tape tape(*model.home, dtype, {.update = model.transformer.update(), .dropout = kStep});
    const ops::TokenLosses losses = model.transformer.losses(
        tape, upload(tape, batch, c.vocabulary_size), 0.1, 0.01, &out.seen);
    for (int64_t t = 0; t < losses.smooth.cols(); ++t)
      out.loss += kernels::load(losses.smooth, 0, t);
    std::vector<std::pair<const Parameter*, Tensor>> ready;
    tape.backward(losses.loss, {}, [&](const Parameter& p) {
      out.ready.push_back(p.name);
      ready.emplace_back(&p, support::copy_of(p.grad));
    });
    for (const auto& [p, grad] : ready)
      EXPECT_TRUE(support::has_same_bits(grad, p->grad)) << p->name << " was ready too early";
    EXPECT_EQ(ready.size(), model.transformer.parameters().all().size());
    EXPECT_EQ(model.home->arena().used_bytes(), 0);
    out.gradient = support::copy_of(model.gradient);
    return out;
  }
};

TEST_P(Recomputation, GivesTheSameBitsAndObservations) {
  for (const int encoder_layers : {2, 0}) {
    const data::PackedBatch batch = pack_all(random_pairs(9, 2, 90, 1, 12, 3), encoder_layers == 0);
    for (const DType dtype : {DType::kF64, DType::kF32}) {
      const Step kept = step(config(encoder_layers), dtype, false, batch),
                 again = step(config(encoder_layers), dtype, true, batch);

      EXPECT_EQ(again.loss, kept.loss);
      EXPECT_GT(support::norm_of(kept.gradient), 0);
      EXPECT_TRUE(support::has_same_bits(again.gradient, kept.gradient));
      EXPECT_EQ(again.ready, kept.ready);
      EXPECT_EQ(again.seen.blocks, kept.seen.blocks) << "each block once, in order";
      ASSERT_EQ(again.seen.tensors.size(), kept.seen.tensors.size());
      for (size_t i = 0; i < kept.seen.tensors.size(); ++i)
        EXPECT_TRUE(support::has_same_bits(again.seen.tensors[i], kept.seen.tensors[i])) << i;
    }
  }
}

TEST_P(Recomputation, GivesTheSameBitsInBf16) {
  const data::PackedBatch batch = pack_all(random_pairs(4, 2, 90, 1, 9, 3), false);
  ModelConfig c = config(2);
  const auto gradient = [&](bool recomputes) {
    c.recompute_activations = recomputes;
    Model model(c, DType::kBF16, 3);
    model.loss(*model.home, batch, kStep);
    return support::copy_of(model.gradient);
  };

  EXPECT_TRUE(support::has_same_bits(gradient(true), gradient(false)));
}

INSTANTIATE_TEST_SUITE_P(Topologies, Recomputation, ::testing::ValuesIn(topology::topology_names()),
                         [](const auto& topology) {
                           std::string name = topology.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(RecomputationMemory, OfADeepModelIsAtMostAFifth) {
  for (const char* topology : {"pre-ln", "residual"})
    for (const int encoder_layers : {0, 20}) {
      ModelConfig c = small_config(topology, encoder_layers, encoder_layers > 0 ? 20 : 40);
      c.width = 32;
      c.heads = 4;
      c.ffn_width = 128;
      c.dropout = 0.1;
      const data::PackedBatch batch =
          pack_all(random_pairs(30, 2, 23, 8, 12, 3), encoder_layers == 0);
      const auto peak = [&](bool recomputes) {
        c.recompute_activations = recomputes;
        Model model(c, DType::kF32);
        model.loss(*model.home, batch, kStep);
        return double(model.home->arena().peak_bytes());
      };

      const double kept = peak(false), again = peak(true);

      EXPECT_LE(again, kept / 5) << topology << ", " << encoder_layers << " encoder layers";
    }
}

// Whether or not activations are recomputed in training.
TEST(EvaluationMemory, GrowsByTheStreamsOfALayerAlone) {
  const data::PackedBatch batch = pack_all(random_pairs(30, 2, 23, 8, 12, 3), false);
  const auto peak = [&](int layers) {
    ModelConfig c = small_config("residual", layers, layers);
    c.width = 32;
    c.heads = 4;
    Model model(c, DType::kF32);
    Tape tape(*model.home, DType::kF32, {.recording = false, .training = false});
    (void)model.transformer.losses(tape, upload(tape, batch, 23), 0, 1);
    return model.home->arena().peak_bytes();
  };

  const int64_t bytes = 2 * int64_t(batch.source.size() + batch.target.size()) * 32 * 4;
  EXPECT_LE((peak(12) - peak(2)) / 10, bytes + 4 * 64);  // blocks begin at multiples of 64
}

}  // namespace
}  // namespace fathom::model
