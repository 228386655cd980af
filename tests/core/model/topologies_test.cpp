// What a topology declares, as seen in whole models: initial values, and which topologies are the
// same function at the start.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/core/model/model_support.h"
#include "tests/support/tolerance.h"

namespace fathom::model {
namespace {

using topology::Part;
using topology::StackKind;

// Factor of a part of a block's weights over the plain rule.
using Factor = std::function<double(const topology::BlockContext&, Part)>;

struct Rows {
  std::string name;  // of the parameter, after the block's
  int64_t first, count;
  Part part;
};

std::vector<Rows> parts_of(const topology::BlockContext& block, const ModelConfig& c) {
  const int64_t C = c.width;
  switch (block.kind) {
    case topology::BlockKind::kSelfAttention:
      return {{"qkv", 0, C, Part::kQuery},
              {"qkv", C, C, Part::kKey},
              {"qkv", 2 * C, C, Part::kValue},
              {"out", 0, C, Part::kAttentionOut}};
    case topology::BlockKind::kCrossAttention:
      return {{"q", 0, C, Part::kQuery},
              {"kv", 0, C, Part::kKey},
              {"kv", C, C, Part::kValue},
              {"out", 0, C, Part::kAttentionOut}};
    case topology::BlockKind::kFeedForward:
      return {{"fc1", 0, c.ffn_width, Part::kFc1}, {"fc2", 0, C, Part::kFc2}};
  }
  return {};
}

// Every row of every matrix of the blocks times its factor; all else as the plain rule has it.
void expect_scaled(const ModelConfig& config, const Factor& factor) {
  ModelConfig plain_config = config;
  plain_config.topology = "pre-ln";
  plain_config.topology_options = {};
  Model model(config, DType::kF64, 7), plain(plain_config, DType::kF64, 7);
  const auto find = [](const Model& m, const std::string& name) -> const Tensor& {
    return m.transformer.parameters().find(name).value;
  };
  int64_t rows = 0;
  for (const topology::BlockContext& block : model.transformer.blocks())
    for (const Rows& part : parts_of(block, config)) {
      const std::string name = topology::name_of(block) + "." + part.name + ".weight";
      const Tensor &got = find(model, name), &from = find(plain, name);
      const double gain = factor(block, part.part);
      for (int64_t r = part.first; r < part.first + part.count; ++r)
        for (int64_t c = 0; c < got.cols(); ++c)
          ASSERT_DOUBLE_EQ(got.row<double>(r)[c], gain * from.row<double>(r)[c])
              << name << " row " << r;
      rows += part.count;
    }
  for (const auto& p : plain.transformer.parameters().all()) {
    const bool is_of_block = p->is_matrix() && p->name.find("embedding") == std::string::npos &&
                             p->name.find("output") == std::string::npos;
    if (is_of_block) rows -= p->value.rows();
    if (is_of_block || p->name.find("final_norm") != std::string::npos) continue;
    EXPECT_TRUE(support::has_same_bits(find(model, p->name), p->value)) << p->name;
  }
  EXPECT_EQ(rows, 0) << "a matrix was not looked at";
}

bool is_query_or_key(Part part) { return part == Part::kQuery || part == Part::kKey; }

TEST(InitialValues, OfDeepNormAreScaledButForQueriesAndKeys) {
  for (const auto& [N, M] : {std::pair{2, 3}, {3, 1}, {0, 3}}) {
    const double depth = std::pow(std::pow(N, 4) * M, 1.0 / 16);
    expect_scaled(small_config("deepnorm", N, M),
                  [&, N = N, M = M](const topology::BlockContext& block, Part part) {
                    if (is_query_or_key(part)) return 1.0;
                    if (N == 0) return std::pow(8 * M, -0.25);
                    return block.stack == StackKind::kEncoder ? 0.87 / depth
                                                              : std::pow(12 * M, -0.25);
                  });
  }
}

TEST(InitialValues, OfSubLnAreScaledButForQueriesKeysAndCrossAttention) {
  for (const auto& [N, M] : {std::pair{2, 3}, {3, 1}, {0, 3}})
    expect_scaled(small_config("sub-ln", N, M), [N = N, M = M](const topology::BlockContext& block,
                                                               Part part) {
      if (is_query_or_key(part)) return 1.0;
      if (block.kind == topology::BlockKind::kCrossAttention) return 1.0;
      if (N == 0) return std::sqrt(std::log(2 * M));
      return block.stack == StackKind::kEncoder ? std::sqrt(std::log(3 * M) * std::log(2 * N) / 3)
                                                : std::sqrt(std::log(3 * M));
    });
}

TEST(InitialValues, OfHyperConnectionsAreScaledAtTheLastProjections) {
  for (const int streams : {2, 3}) {
    ModelConfig config = small_config("hyper-connections", 2, 2);
    config.topology_options = {{"streams", std::to_string(streams)}};
    expect_scaled(config, [&](const topology::BlockContext&, Part part) {
      return part == Part::kAttentionOut || part == Part::kFc2 ? std::sqrt(streams) : 1.0;
    });
  }
}

TEST(InitialValues, OfTheOthersAreThePlainOnes) {
  for (const std::string name : {"post-ln", "residual", "admin", "denseformer", "branchnorm"})
    for (const int encoder_layers : {0, 2})
      expect_scaled(small_config(name, encoder_layers, 2),
                    [](const topology::BlockContext&, Part) { return 1.0; });
}

// With Pre-LN's weights, except those that Pre-LN does not have.
double loss_with_weights_of_pre_ln(const ModelConfig& config, const data::PackedBatch& batch,
                                   double* want) {
  ModelConfig plain_config = config;
  plain_config.topology = "pre-ln";
  plain_config.topology_options = {};
  Model model(config, DType::kF64), plain(plain_config, DType::kF64, 9);
  for (const auto& p : plain.transformer.parameters().all())
    std::memcpy(model.transformer.parameters().find(p->name).value.address(), p->value.address(),
                size_t(p->value.bytes()));
  const auto device = tensor::make_reference_device();
  *want = plain.loss(*device, batch);
  return model.loss(*device, batch);
}

TEST(HyperConnections, StartAsPreLn) {
  for (const int encoder_layers : {0, 3})
    for (const char* streams : {"2", "3", "4"}) {
      ModelConfig config = small_config("hyper-connections", encoder_layers, 3);
      config.topology_options = {{"streams", streams}};
      double want = 0;

      const double got = loss_with_weights_of_pre_ln(
          config, pack_all(random_pairs(5, 2, 23, 1, 9, 1), encoder_layers == 0), &want);

      EXPECT_NEAR(got, want, 1e-6 * want) << streams;  // the eps of the final norm
    }
}

TEST(DenseFormer, StartsAsPreLn) {
  for (const int encoder_layers : {0, 3}) {
    double want = 0;

    const double got = loss_with_weights_of_pre_ln(
        small_config("denseformer", encoder_layers, 3),
        pack_all(random_pairs(5, 2, 23, 1, 9, 1), encoder_layers == 0), &want);

    EXPECT_DOUBLE_EQ(got, want);
  }
}

// The two ends of its schedule.
TEST(BranchNorm, StartsWithoutItsBlocksAndEndsAsPostLn) {
  ModelConfig config = small_config("branchnorm", 2, 2);
  config.topology_options = {{"updates", "100"}};
  Model model(config, DType::kF64), post(small_config("post-ln", 2, 2), DType::kF64);
  const auto device = tensor::make_reference_device();
  const data::PackedBatch batch = pack_all(random_pairs(5, 2, 23, 1, 9, 1), false);
  const double want = post.loss(*device, batch);
  for (const int64_t update : {100, 5000}) {
    model.transformer.set_update(update);
    EXPECT_DOUBLE_EQ(model.loss(*device, batch), want) << update;
  }
  model.transformer.set_update(50);
  EXPECT_GT(std::abs(model.loss(*device, batch) - want), 1e-3 * want);

  model.transformer.set_update(0);
  model.loss(*device, batch);

  for (const auto& p : model.transformer.parameters().all())
    if (p->is_matrix() && p->role != Role::kEmbedding) {
      EXPECT_EQ(support::norm_of(p->grad), 0) << p->name;
    }
}

}  // namespace
}  // namespace fathom::model
