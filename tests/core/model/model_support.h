// Small models, ragged random pairs, and one training step, for the tests of whole models.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/model/transformer.h"
#include "core/optim/adam.h"
#include "tests/support/devices.h"

namespace fathom::model {

// Pairs of random tokens in [first, vocabulary), lengths in [shortest, longest], without EOS.
[[nodiscard]] inline std::vector<data::TokenPair> random_pairs(int64_t count, int32_t first,
                                                               int32_t vocabulary, int32_t shortest,
                                                               int32_t longest, uint64_t seed) {
  const PhiloxStream stream(seed, "test pairs");
  uint64_t at = 0;
  const auto below = [&](int32_t n) { return int32_t(stream.bits(at++) % uint64_t(n)); };
  const auto sentence = [&] {
    std::vector<int32_t> tokens(size_t(shortest + below(longest - shortest + 1)));
    for (int32_t& t : tokens) t = first + below(vocabulary - first);
    return tokens;
  };
  std::vector<data::TokenPair> pairs;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int32_t> source = sentence();
    pairs.push_back({std::move(source), sentence()});
  }
  return pairs;
}

[[nodiscard]] inline data::PackedBatch pack_all(std::vector<data::TokenPair> pairs,
                                                bool decoder_only) {
  if (decoder_only)
    for (data::TokenPair& p : pairs) p.source.clear();
  const data::Dataset data = data::Dataset::from_pairs(pairs, decoder_only);
  std::vector<int64_t> all;
  for (int64_t i = 0; i < data.size(); ++i) all.push_back(i);
  return data::pack(data, all);
}

[[nodiscard]] inline ModelConfig small_config(const std::string& topology, int encoder_layers,
                                              int decoder_layers) {
  ModelConfig c;
  c.kind = encoder_layers > 0 ? ModelKind::kEncoderDecoder : ModelKind::kDecoder;
  c.encoder_layers = encoder_layers;
  c.decoder_layers = decoder_layers;
  c.topology = topology;
  c.width = 12;
  c.heads = 3;
  c.ffn_width = 20;
  c.dropout = 0;
  c.vocabulary_size = 23;
  return c;
}

// Where the weights of a model of this type live; other devices may run it as well.
[[nodiscard]] inline std::unique_ptr<Device> home_device(DType dtype) {
  return dtype == DType::kF32 ? tensor::make_cpu_device(1) : tensor::make_reference_device();
}

// A model with its device, its gradient buffer and an optimizer.
struct Model {
  std::unique_ptr<Device> home;
  Transformer transformer;
  Tensor gradient;
  optim::Adam adam;

  Model(const ModelConfig& config, DType dtype, uint64_t seed = 1)
      : home(home_device(dtype)),
        transformer(config, *home, dtype),
        gradient(
            support::zeros(1, transformer.parameters().size(), transformer.parameters().wide())),
        adam({}, transformer.parameters()) {
    transformer.initialise(seed);
    transformer.set_update(1000);  // where schedules in topologies are on their way
    transformer.parameters().bind_gradients(gradient);
  }

  // Updates the weights by `gradient`.
  void update(double rate) {
    adam.step(gradient, support::update_control(), rate);
    adam.count_update();
  }

  // The objective per target token; leaves its gradient in `gradient` (added to what is there with
  // `is_adding`). The sum is divided by `divisor`, or by the batch's target tokens when that is 0.
  double loss(Device& device, const data::PackedBatch& batch, kernels::DropoutStep dropout = {},
              double smoothing = 0.1, bool is_adding = false, double divisor = 0) {
    const DType dtype = transformer.parameters().dtype();
    if (!is_adding) std::memset(gradient.address(), 0, size_t(gradient.bytes()));
    Tape tape(device, dtype, {.update = transformer.update(), .dropout = dropout});
    const double weight = 1 / (divisor > 0 ? divisor : double(batch.target.size()));
    const ops::TokenLosses losses = transformer.losses(
        tape, upload(tape, batch, transformer.config().vocabulary_size), smoothing, weight);
    double sum = 0;
    for (int64_t t = 0; t < losses.smooth.cols(); ++t)
      sum += weight * kernels::load(losses.smooth, 0, t);
    tape.backward(losses.loss);
    return sum;
  }
};

}  // namespace fathom::model
