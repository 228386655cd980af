// The shape of a model, as the `model` section of a config gives it. Plain data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fathom::model {

enum class ModelKind { kEncoderDecoder, kDecoder };
enum class ShareEmbeddings { kAll, kDecoder, kNone };  // which tables are one
enum class Activation { kRelu, kGelu };
enum class InitRule { kFairseq, kXavier };  // theory: `docs/topologies.md`

struct ModelConfig {
  ModelKind kind = ModelKind::kEncoderDecoder;
  int encoder_layers = 6;  // 0 in a decoder-only model
  int decoder_layers = 6;
  std::string topology = "residual";                         // a name in core/topology/registry.h
  std::map<std::string, std::string> topology_options = {};  // per topology: alpha, scale
  int64_t width = 256;
  int64_t ffn_width = 1024;
  int64_t heads = 4;
  Activation activation = Activation::kRelu;
  double dropout = 0.1;           // on embeddings and on every block's output
  double attention_dropout = 0;   // on attention weights
  double activation_dropout = 0;  // after the activation of the feed-forward block
  ShareEmbeddings share_embeddings = ShareEmbeddings::kAll;
  InitRule init = InitRule::kFairseq;
  bool recompute_activations = false;  // a layer's activations are computed again in backward
  int64_t vocabulary_size = 0;         // entries; set from the tokenizer
};

// A value that the others rule out.
struct Contradiction {
  std::string key;  // "model.heads"
  int64_t value = 0;
  std::string allowed;  // "a divisor of model.width (256)"
  // Another key that could change instead, where there is one.
  std::string other = {};
  std::string other_allowed = {};
};

// All of a model whose values are each within their range.
[[nodiscard]] std::vector<Contradiction> contradictions(const ModelConfig& model);

// Sublayers with their residual connections, of both stacks.
[[nodiscard]] inline int64_t block_count(const ModelConfig& model) {
  const int64_t in_decoder_layer = model.kind == ModelKind::kEncoderDecoder ? 3 : 2;
  return 2 * int64_t(model.encoder_layers) + in_decoder_layer * model.decoder_layers;
}

}  // namespace fathom::model
