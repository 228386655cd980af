#include "tests/core/theory/initial_model.h"

#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "core/base/philox.h"
#include "tests/core/theory/measures.h"
#include "tests/support/random_tensor.h"

namespace fathom::theory {
namespace {

constexpr int kSeeds = 3;
constexpr int64_t kSentences = 12, kLength = 24;  // EOS not counted
constexpr int64_t kSentencesPerShard = 2;         // 50 rows: all of them are sampled

std::vector<data::TokenPair> random_pairs(uint64_t seed) {
  const PhiloxStream stream(seed, "theory/tokens");
  uint64_t i = 0;
  const auto sentence = [&] {
    std::vector<int32_t> tokens(kLength);
    for (int32_t& t : tokens)
      t = 2 + int32_t(stream.bits(i++) % uint64_t(kInitialVocabulary - 2));  // 0, 1 are special
    return tokens;
  };
  std::vector<data::TokenPair> pairs(kSentences);
  for (data::TokenPair& p : pairs) p = {.source = sentence(), .target = sentence()};
  return pairs;
}

std::vector<data::ShardRows> shards() {
  std::vector<data::ShardRows> all;
  const int64_t rows = kSentencesPerShard * (kLength + 1);
  for (int64_t first = 0; first < kSentences * (kLength + 1); first += rows)
    all.push_back({first, rows, first, rows});
  return all;
}

// (shards, blocks * kBlockSums)
void add_sums(InitialModel& out, const Tensor& by_shard) {
  const std::vector<observe::BlockSums> sums =
      observe::add_shards(std::span(by_shard.data<double>(), size_t(by_shard.numel())),
                          by_shard.rows(), int64_t(out.blocks.size()));
  out.sums.resize(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) out.sums[i] += sums[i];
}

void add_gradients(InitialModel& out, const ParameterStore& store) {
  for (const topology::BlockContext& block : out.blocks) {
    if (block.kind != topology::BlockKind::kFeedForward) continue;
    auto& side =
        block.stack == topology::StackKind::kEncoder ? out.encoder_gradient : out.decoder_gradient;
    if (side.size() < size_t(block.layer)) side.push_back(1);
    const double g = norm(store.find(topology::name_of(block) + ".fc2.weight").grad);
    side[size_t(block.layer - 1)] *= std::pow(g, 1.0 / kSeeds);
  }
}

void add_seed(InitialModel& out, const model::ModelConfig& config, Device& device, uint64_t seed,
              Direction direction) {
  model::Transformer model(config, device, DType::kF32);
  model.initialise(seed);
  ParameterStore& store = model.parameters();
  const Tensor gradients = support::zeros(1, store.size(), DType::kF32);
  store.bind_gradients(gradients);

  const std::vector<data::TokenPair> pairs = random_pairs(seed);
  const data::Dataset data = data::Dataset::from_pairs(pairs, false);
  std::vector<int64_t> order(kSentences);
  std::iota(order.begin(), order.end(), 0);
  const data::PackedBatch packed = data::pack(data, order);
  const std::vector<data::ShardRows> ranges = shards();
  out.blocks = model.blocks();
  const Tensor sums = support::zeros(int64_t(ranges.size()),
                                     int64_t(out.blocks.size()) * observe::kBlockSums, DType::kF64);
  observe::LayerProbe probe(device.compute(), out.blocks, ranges, sums);
  const bool is_recording = direction == Direction::kForwardAndBackward;
  Tape tape(device, DType::kF32, {.recording = is_recording, .training = false, .dropout = {}});
  // Transformer::losses, taken apart to see the decoder's output.
  const model::DeviceBatch batch = model::upload(tape, packed, kInitialVocabulary);
  const model::PackedRows& target = batch.target;
  const Var memory = model.encode(tape, batch.source, &probe);
  const model::BlockInput input{.segments = target.segments(),
                                .rows = target.ids(),
                                .causal = true,
                                .memory = memory,
                                .memory_segments = batch.source.segments()};
  const Var y = model.decode(tape, target.tokens, target.position, target.longest, input, &probe);
  const ops::TokenLosses losses = ops::linear_cross_entropy(
      y, store.find("embedding.weight"), batch.targets, 0, 1 / double(batch.targets.numel()));
  out.output_variance += mean_square(y.value()) / kSeeds;
  for (int64_t t = 0; t < losses.nll.numel(); ++t)
    out.nll += double(losses.nll.data<float>()[t]) / double(losses.nll.numel() * kSeeds);
  add_sums(out, sums);
  if (!is_recording) return;
  tape.backward(losses.loss);
  add_gradients(out, store);
}

}  // namespace

const InitialModel& initial_model(const std::string& topology, model::InitRule init, int layers,
                                  Direction direction) {
  static std::map<std::tuple<std::string, model::InitRule, int, Direction>, InitialModel> known;
  const auto [at, is_new] = known.try_emplace({topology, init, layers, direction});
  if (!is_new) return at->second;
  model::ModelConfig config;
  config.encoder_layers = config.decoder_layers = layers;
  config.topology = topology;
  config.init = init;
  config.vocabulary_size = kInitialVocabulary;
  const auto device = tensor::make_cpu_device(1);
  for (int seed = 1; seed <= kSeeds; ++seed)
    add_seed(at->second, config, *device, uint64_t(seed), direction);
  return at->second;
}

double growth_per_layer(const std::vector<double>& per_layer) {
  std::vector<double> layer, logarithm;
  for (const double g : per_layer) {
    layer.push_back(double(layer.size()));
    logarithm.push_back(std::log(g));
  }
  return std::exp(slope(layer, logarithm));
}

double cross_attention_factor(const InitialModel& model) {
  double f = 0, tokens = 0;
  for (size_t i = 0; i < model.blocks.size(); ++i) {
    if (model.blocks[i].kind != topology::BlockKind::kCrossAttention) continue;
    f += model.sums[i].branch;
    tokens += model.sums[i].tokens;
  }
  return std::sqrt(1 + f / tokens);
}

}  // namespace fathom::theory
