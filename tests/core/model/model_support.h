// Small models, ragged random pairs, and one training step, for the tests of whole models.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "core/model/transformer.h"
#include "core/optim/adam.h"
#include "tests/support/random_tensor.h"

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

// A model with its gradient buffer.
struct Model {
  Transformer transformer;
  Tensor gradient;

  Model(const ModelConfig& config, DType dtype, uint64_t seed = 1) : transformer(config, dtype) {
    transformer.initialise(seed);
    gradient = autograd::allocate_flat(transformer.parameters().size(), dtype);
    transformer.parameters().bind_gradients(gradient);
  }

  // The objective per target token; leaves its gradient in `gradient` (added to what is there with
  // `is_adding`). The sum is divided by `divisor`, or by the batch's target tokens when that is 0.
  double loss(Device& device, const data::PackedBatch& batch, kernels::DropoutStep dropout = {},
              double smoothing = 0.1, bool is_adding = false, double divisor = 0) {
    const DType dtype = transformer.parameters().dtype();
    if (!is_adding) std::memset(gradient.raw(), 0, size_t(gradient.numel() * size_of(dtype)));
    Tape tape(device, dtype, {.dropout = dropout});
    const double weight = 1 / (divisor > 0 ? divisor : double(batch.target.size()));
    const ops::TokenLosses losses = transformer.losses(tape, batch, smoothing, weight);
    double sum = 0;
    for (int64_t t = 0; t < losses.smooth.cols(); ++t)
      sum += weight *
             visit_float(dtype, [&]<class T>() { return double(losses.smooth.data<T>()[t]); });
    tape.backward(losses.loss);
    return sum;
  }
};

}  // namespace fathom::model
