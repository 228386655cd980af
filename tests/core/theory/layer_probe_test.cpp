// The layer statistics of activations: against closed forms over stub blocks, against a direct
// computation on a real model, and the rule of what is sampled.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/transformer.h"
#include "tests/core/theory/closed_forms.h"
#include "tests/core/theory/measures.h"
#include "tests/core/theory/stub_stack.h"
#include "tests/support/layer_statistics.h"
#include "tests/support/tolerance.h"

namespace fathom::theory {
namespace {

using support::ActivationStatistics;
using support::statistics_of;
using ::testing::HasSubstr;

// A probe with the memory it adds to.
struct Probe {
  int64_t blocks;
  Tensor sums;  // (shards, blocks * kBlockSums)
  observe::LayerProbe observer;

  Probe(Device& device, const std::vector<topology::BlockContext>& b,
        const std::vector<data::ShardRows>& shards)
      : blocks(int64_t(b.size())),
        sums(support::zeros(int64_t(shards.size()), blocks * observe::kBlockSums, DType::kF64)),
        observer(device.compute(), b, shards, sums) {}

  [[nodiscard]] std::vector<observe::BlockSums> all() const {
    return observe::add_shards(std::span(sums.data<double>(), size_t(sums.numel())), sums.rows(),
                               blocks);
  }
};

// Shards of 64 rows, so that every row is sampled.
std::vector<ActivationStatistics> statistics_over_all_rows(const StubRun& run) {
  const int64_t rows = run.pass.states[0][0].value().rows();
  std::vector<data::ShardRows> shards;
  for (int64_t first = 0; first < rows; first += observe::kSampleRows)
    shards.push_back({first, std::min(observe::kSampleRows, rows - first), 0, 0});
  const std::vector<topology::BlockContext> blocks = run.stack.contexts();
  Probe probe(*run.device, blocks, shards);
  for (size_t i = 0; i < blocks.size(); ++i)
    probe.observer.on_block(blocks[i], run.pass.states[i][0].value(), run.pass.outputs[i].value(),
                            run.pass.states[i + 1][0].value());
  std::vector<ActivationStatistics> out;
  for (const observe::BlockSums& s : probe.all()) {
    EXPECT_EQ(s.tokens, double(rows));
    out.push_back(statistics_of(s));
  }
  return out;
}

TEST(LayerStatistics, FollowTheClosedFormsOfPreLn) {
  const double f = 1.44, v0 = 0.5;
  const StubRun run("pre-ln", {}, draw({.blocks = 16, .sigma = 1.2, .v0 = v0, .seed = 31}));
  const std::vector<ActivationStatistics> all = statistics_over_all_rows(run);

  for (int k = 1; k <= 16; ++k) {
    const ActivationStatistics& s = all[size_t(k - 1)];
    const double V = v0 + (k - 1) * f;
    EXPECT_NEAR(s.hidden_rms / std::sqrt(V + f), 1, 0.01) << "block " << k;
    EXPECT_NEAR(s.branch_share / branch_share(V, f), 1, 0.01) << "block " << k;
    EXPECT_NEAR(s.omega_predicted / std::sqrt(omega_squared(V, f)), 1, 0.01) << "block " << k;
    EXPECT_NEAR(s.omega / std::sqrt(omega_squared_at_width(V, f, 512)), 1, 0.005) << "block " << k;
    EXPECT_NEAR(s.cosine, std::sqrt(V / (V + f)), 0.002) << "block " << k;
  }
}

class StatisticsOfTheNormalisedStream : public testing::TestWithParam<const char*> {};

TEST_P(StatisticsOfTheNormalisedStream, FollowTheClosedFormsAtEveryDepth) {
  const double f = 0.49;
  const StubRun run(GetParam(), {}, draw({.blocks = 16, .sigma = 0.7, .seed = 32}));
  const std::vector<ActivationStatistics> all = statistics_over_all_rows(run);

  for (size_t k = 0; k < all.size(); ++k) {
    const ActivationStatistics& s = all[k];
    EXPECT_NEAR(s.hidden_rms, 1, 1e-4) << "block " << k + 1;
    EXPECT_NEAR(s.branch_share / branch_share(1, f), 1, 0.005) << "block " << k + 1;
    EXPECT_NEAR(s.omega_predicted / std::sqrt(post_ln_omega_squared(f)), 1, 0.005);
    EXPECT_NEAR(s.omega / std::sqrt(post_ln_omega_squared(f)), 1, 0.006) << "block " << k + 1;
    EXPECT_NEAR(s.cosine, 1 - s.omega * s.omega / 2, k == 0 ? 1e-3 : 1e-5) << "block " << k + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Topologies, StatisticsOfTheNormalisedStream,
                         testing::Values("post-ln", "residual"));

TEST(LayerStatistics, OmegaIgnoresScaleAndOffsetOfTheStream) {
  const int64_t rows = 8, width = 32;
  const Tensor x = normal_matrix(rows, width, 1, 33, "x", DType::kF64),
               o = normal_matrix(rows, width, 1, 33, "o", DType::kF64),
               next = support::zeros(rows, width, DType::kF64);
  for (int64_t i = 0; i < x.numel(); ++i) next.data<double>()[i] = 3 - 0.25 * x.data<double>()[i];
  const auto device = tensor::make_reference_device();
  Probe probe(*device, {topology::BlockContext{}}, {data::ShardRows{0, rows, 0, 0}});
  probe.observer.on_block({}, x, o, next);

  // The normalised stream changed its sign: (2 x)^2 in the mean.
  EXPECT_NEAR(statistics_of(probe.all()[0]).omega, 2, 1e-12);
}

TEST(LayerStatistics, AreNanWhenNothingWasSampled) {
  const ActivationStatistics s = statistics_of({});
  for (const double v : {s.hidden_rms, s.omega, s.omega_predicted, s.branch_share, s.cosine})
    EXPECT_TRUE(std::isnan(v)) << v;
}

TEST(AddShards, AddsInShardOrder) {
  // 1e16 + 1 = 1e16 in f64, so the 1 survives only where the large ones were added before.
  std::vector<double> values(3 * 2 * observe::kBlockSums);
  const double shard_values[] = {1e16, -1e16, 1};
  for (size_t s = 0; s < 3; ++s)
    for (size_t i = 0; i < 2 * observe::kBlockSums; ++i)
      values[s * 2 * observe::kBlockSums + i] = shard_values[s];
  values[3] = 5e16;  // shard 1, block 1, branch

  const std::vector<observe::BlockSums> sums = observe::add_shards(values, 3, 2);

  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].tokens, 1);
  EXPECT_EQ(sums[0].branch, 4e16);
  EXPECT_EQ(sums[1].branch, 1);
  EXPECT_EQ(sums[1].cosine, 1);
}

TEST(AddShards, RefusesAWrongNumberOfValues) {
  try {
    (void)observe::add_shards(std::vector<double>(11), 1, 2);
    FAIL() << "no error";
  } catch (const InvalidArgument& e) {
    EXPECT_THAT(e.what(), HasSubstr("add_shards: got 11 values for 1 shards of 2 blocks"));
  }
}

// Computes every statistic from its definition over given rows of each stack.
class DirectStatistics final : public model::BlockObserver {
 public:
  struct Rows {
    int64_t first, count;
  };
  DirectStatistics(std::vector<Rows> source, std::vector<Rows> target)
      : source_(std::move(source)), target_(std::move(target)) {}

  void on_block(const topology::BlockContext& block, const Tensor& x, const Tensor& o,
                const Tensor& next) override {
    double tokens = 0, square = 0, V = 0, f = 0, omega2 = 0, cosine = 0;
    for (const auto& [first, count] :
         block.stack == topology::StackKind::kEncoder ? source_ : target_) {
      omega2 += omega_squared_between(x, next, first, count) * double(count);
      for (int64_t t = first; t < first + count; ++t, ++tokens) {
        const Tensor a = x.row_range(t, 1), b = o.row_range(t, 1), c = next.row_range(t, 1);
        square += mean_square(c);
        V += variance(a);
        f += variance(b);
        cosine += mean_product(a, c) / std::sqrt(mean_square(a) * mean_square(c));
      }
    }
    statistics.push_back({.hidden_rms = std::sqrt(square / tokens),
                          .omega = std::sqrt(omega2 / tokens),
                          .omega_predicted = std::sqrt(omega_squared(V / tokens, f / tokens)),
                          .branch_share = branch_share(V / tokens, f / tokens),
                          .cosine = cosine / tokens});
  }

  std::vector<ActivationStatistics> statistics;

 private:
  static double variance(const Tensor& row) {
    const double average = mean_over(row, row, [](double v, double) { return v; });
    return mean_over(row, row, [=](double v, double) { return (v - average) * (v - average); });
  }
  std::vector<Rows> source_, target_;
};

// Three shards: sources of 70, 10 and 80 rows, targets of 20, 66 and 64, EOS counted.
struct ShardedModel {
  explicit ShardedModel(const std::string& topology)
      : device(tensor::make_reference_device()),
        model(config(topology), *device, DType::kF64),
        data(data::Dataset::from_pairs(
            std::vector{pair(29, 9), pair(39, 9), pair(9, 65), pair(79, 63)}, false)) {
    model.initialise(35);
  }
  static model::ModelConfig config(const std::string& topology) {
    model::ModelConfig c;
    c.encoder_layers = c.decoder_layers = 2;
    c.topology = topology;
    c.width = 16;
    c.ffn_width = 32;
    c.heads = 2;
    c.vocabulary_size = 50;
    return c;
  }
  static data::TokenPair pair(int source, int target) {
    const PhiloxStream stream(36, join("pair/", source, "/", target));
    data::TokenPair p{.source = std::vector<int32_t>(size_t(source)),
                      .target = std::vector<int32_t>(size_t(target))};
    uint64_t i = 0;
    for (auto* side : {&p.source, &p.target})
      for (int32_t& t : *side) t = 2 + int32_t(stream.bits(i++) % 48);
    return p;
  }
  void observe(std::vector<int64_t> pairs, model::BlockObserver& observer) {
    Tape tape(*device, DType::kF64, {.recording = false, .training = false, .dropout = {}});
    const model::DeviceBatch batch = model::upload(tape, data::pack(data, pairs), 50);
    (void)model.losses(tape, batch, 0, 1, &observer);
  }

  std::unique_ptr<Device> device;
  model::Transformer model;
  data::Dataset data;
};
const std::vector<data::ShardRows> kThreeShards = {
    {0, 70, 0, 20}, {70, 10, 20, 66}, {80, 80, 86, 64}};

class SampledStatistics : public testing::TestWithParam<const char*> {};

TEST_P(SampledStatistics, EqualADirectComputationOverTheFirst64RowsOfEachShard) {
  ShardedModel m(GetParam());
  const std::vector<topology::BlockContext> blocks = m.model.blocks();
  Probe probe(*m.device, blocks, kThreeShards);
  DirectStatistics direct({{0, 64}, {70, 10}, {80, 64}}, {{0, 20}, {20, 64}, {86, 64}});
  m.observe({0, 1, 2, 3}, probe.observer);
  m.observe({0, 1, 2, 3}, direct);

  const std::vector<observe::BlockSums> sums = probe.all();
  ASSERT_EQ(direct.statistics.size(), blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    const ActivationStatistics s = statistics_of(sums[i]), &d = direct.statistics[i];
    EXPECT_EQ(sums[i].tokens, blocks[i].stack == topology::StackKind::kEncoder ? 138 : 148);
    EXPECT_NEAR(s.hidden_rms, d.hidden_rms, 1e-12) << topology::name_of(blocks[i]);
    EXPECT_NEAR(s.omega, d.omega, 1e-12) << topology::name_of(blocks[i]);
    EXPECT_NEAR(s.omega_predicted, d.omega_predicted, 1e-12) << topology::name_of(blocks[i]);
    EXPECT_NEAR(s.branch_share, d.branch_share, 1e-12) << topology::name_of(blocks[i]);
    EXPECT_NEAR(s.cosine, d.cosine, 1e-12) << topology::name_of(blocks[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Topologies, SampledStatistics,
                         testing::Values("post-ln", "pre-ln", "residual"));

TEST(LayerStatistics, DoNotDependOnWhichShardsShareAPass) {
  ShardedModel m("residual");
  const std::vector<topology::BlockContext> blocks = m.model.blocks();
  Probe together(*m.device, blocks, kThreeShards);
  m.observe({0, 1, 2, 3}, together.observer);

  const std::vector<std::vector<int64_t>> pairs = {{0, 1}, {2}, {3}};
  for (size_t shard = 0; shard < 3; ++shard) {
    const data::ShardRows& r = kThreeShards[shard];
    Probe alone(*m.device, blocks, {{0, r.source_rows, 0, r.target_rows}});
    m.observe(pairs[shard], alone.observer);
    EXPECT_TRUE(support::has_same_bits(alone.sums, together.sums.row_range(int64_t(shard), 1)))
        << "shard " << shard;
  }
}

}  // namespace
}  // namespace fathom::theory
