// A whole encoder-decoder at initialisation: one pass over 300 random tokens a side, for three
// seeds, and what the theory is about. Width 256, feed-forward 1024, four heads, tied
// embeddings, no dropout, no label smoothing.
#pragma once

#include <string>
#include <vector>

#include "core/model/transformer.h"
#include "core/observe/layer_probe.h"

namespace fathom::theory {

struct InitialModel {
  // Per layer: ||dL/dW|| of the feed-forward block's second matrix, geometric mean over seeds.
  std::vector<double> encoder_gradient, decoder_gradient;
  // Per block, encoder then decoder: sums over the sampled tokens of all seeds.
  std::vector<topology::BlockContext> blocks;
  std::vector<observe::BlockSums> sums;
  double nll = 0;              // nats per target token, mean over seeds
  double output_variance = 0;  // of the decoder's output, mean over seeds
};

inline constexpr int64_t kInitialVocabulary = 2000;

enum class Direction { kForward, kForwardAndBackward };

// Measured once per process and kept. Forward alone leaves the gradients empty.
[[nodiscard]] const InitialModel& initial_model(
    const std::string& topology, model::InitRule init, int layers,
    Direction direction = Direction::kForwardAndBackward);

// Factor from layer to layer of a least-squares line through the logarithms.
[[nodiscard]] double growth_per_layer(const std::vector<double>& per_layer);
// sqrt(1 + f), f = mean variance of what the decoder's cross-attention blocks add.
[[nodiscard]] double cross_attention_factor(const InitialModel& model);

}  // namespace fathom::theory
