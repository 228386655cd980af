// The profiling pass against its definition, computed with plain loops from what an observer sees.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/core/model/model_support.h"
#include "tests/support/tolerance.h"

namespace fathom::model {
namespace {

std::vector<data::PackedBatch> shards_of(bool decoder_only, const std::vector<int64_t>& sizes) {
  std::vector<data::TokenPair> pairs = random_pairs(9, 2, 23, 1, 9, 4);
  if (decoder_only)
    for (data::TokenPair& p : pairs) p.source.clear();
  const data::Dataset data = data::Dataset::from_pairs(pairs, decoder_only);
  std::vector<data::PackedBatch> shards;
  int64_t at = 0;
  for (const int64_t size : sizes) {
    std::vector<int64_t> chosen;
    for (int64_t i = 0; i < size; ++i) chosen.push_back(at++);
    shards.push_back(data::pack(data, chosen));
  }
  return shards;
}

std::vector<double> on_host(Transformer& model, const Tensor& rows) {
  std::vector<double> values(size_t(rows.numel()));
  model.parameters().device().compute().download(std::span(values), rows);
  return values;
}

void profile(Transformer& model, const std::vector<data::PackedBatch>& shards) {
  model.profile(shards, [&](const Tensor& rows) { return on_host(model, rows); });
}

double variance(const double* x, int64_t count) {
  double mean = 0, sum = 0;
  for (int64_t i = 0; i < count; ++i) mean += x[i] / double(count);
  for (int64_t i = 0; i < count; ++i) sum += (x[i] - mean) * (x[i] - mean) / double(count);
  return sum;
}

// Variances of the stream before each block and of its output, summed over tokens.
class Variances final : public BlockObserver {
 public:
  struct Sums {
    double tokens = 0, stream = 0, output = 0;
  };
  void on_block(const topology::BlockContext& block, const Tensor& x, const Tensor& o,
                const Tensor&) override {
    Sums& s = sums[topology::name_of(block)];
    for (int64_t t = 0; t < x.rows(); ++t) {
      s.tokens += 1;
      s.stream += variance(x.row<double>(t), x.cols());
      s.output += variance(o.row<double>(t), o.cols());
    }
  }
  std::map<std::string, Sums> sums;
};

// omega_1 = 1, omega_(k+1) = sqrt(Var(omega_k x_(k-1)) + Var f_k), each stack by itself. With the
// weights right below block k, what an observer sees there is what the definition is about.
TEST(AdminProfile, IsItsRecurrenceOverAllTokensOfTheBatch) {
  for (const int encoder_layers : {2, 0}) {
    ModelConfig config = small_config("admin", encoder_layers, 3);
    config.dropout = config.attention_dropout = config.activation_dropout = 0.5;
    Model model(config, DType::kF64, 3);
    const std::vector<data::PackedBatch> shards = shards_of(encoder_layers == 0, {2, 0, 3, 4});

    profile(model.transformer, shards);

    Variances seen;
    for (const data::PackedBatch& shard : shards) {
      if (shard.target.empty()) continue;
      Tape tape(*model.home, DType::kF64, {.recording = false, .training = false});
      (void)model.transformer.losses(tape, upload(tape, shard, 23), 0, 1, &seen);
    }
    double omega = 1;
    for (const topology::BlockContext& block : model.transformer.blocks()) {
      if (block.block == 1) omega = 1;
      const std::string name = topology::name_of(block);
      const Tensor& w = model.transformer.parameters().find(name + ".stream_weight").value;
      for (int64_t c = 0; c < w.cols(); ++c)
        ASSERT_NEAR(w.data<double>()[c], omega, 1e-12 * omega) << name;
      const Variances::Sums& s = seen.sums.at(name);
      omega = std::sqrt((omega * omega * s.stream + s.output) / s.tokens);
    }
    EXPECT_GT(omega, 1);
  }
}

TEST(AdminProfile, DependsNeitherOnDropoutNorOnHowTheShardsAreSpread) {
  const std::vector<data::PackedBatch> shards = shards_of(false, {2, 3, 4});
  ModelConfig config = small_config("admin", 2, 2);
  Model plain(config, DType::kF32, 3);
  profile(plain.transformer, shards);
  config.dropout = config.attention_dropout = config.activation_dropout = 0.5;
  Model with_dropout(config, DType::kF32, 3);
  profile(with_dropout.transformer, shards);
  EXPECT_TRUE(support::has_same_bits(with_dropout.transformer.parameters().weights(),
                                     plain.transformer.parameters().weights()));

  // Two ranks in turn: the first stops where it would wait for the second, whose rows are known
  // from a pass over all shards.
  std::vector<std::vector<double>> all;
  Model whole(config, DType::kF32, 3);
  whole.transformer.profile(shards, [&](const Tensor& rows) {
    all.push_back(on_host(whole.transformer, rows));
    return all.back();
  });
  size_t call = 0;
  Model second(config, DType::kF32, 3);
  second.transformer.profile(std::span(shards).subspan(1), [&](const Tensor& rows) {
    std::vector<double> gathered = all[call++];
    const std::vector<double> own = on_host(second.transformer, rows);
    std::copy(own.begin(), own.end(), gathered.end() - std::ptrdiff_t(own.size()));
    return gathered;
  });
  EXPECT_TRUE(support::has_same_bits(second.transformer.parameters().weights(),
                                     plain.transformer.parameters().weights()));
}

TEST(Profile, IsRequestedByAdminAlone) {
  for (const std::string& name : topology::topology_names())
    EXPECT_EQ(Model(small_config(name, 1, 1), DType::kF32).transformer.wants_profile(),
              name == "admin");
}

}  // namespace
}  // namespace fathom::model
