#include "core/model/transformer.h"

#include <algorithm>
#include <cmath>

#include "core/model/init.h"
#include "core/ops/embedding.h"
#include "core/ops/linear.h"

namespace fathom::model {
namespace {

void check(const ModelConfig& c) {
  require(c.vocabulary_size >= 2, "model: a vocabulary of ", c.vocabulary_size, " entries");
  require(c.width >= 4 && c.width % 2 == 0, "model.width: got ", c.width,
          ", must be even and at least 4 (sines and cosines come in pairs)");
  require(c.heads >= 1 && c.width % c.heads == 0, "model.heads: ", c.heads,
          " heads do not divide model.width ", c.width);
  require(c.ffn_width >= 1 && c.decoder_layers >= 1, "model: needs ffn_width and decoder_layers");
  require((c.kind == ModelKind::kDecoder) == (c.encoder_layers == 0), "model.encoder_layers: got ",
          c.encoder_layers, ", a decoder has none and an encoder-decoder at least 1");
}

}  // namespace

// Declared in the order of first use, which fixes the layout of the flat buffers (see
// ParameterStore).
Transformer::Transformer(const ModelConfig& config, DType dtype) : config_(config), store_(dtype) {
  check(config);
  const int64_t V = config.vocabulary_size, C = config.width;
  const bool is_decoder_only = config.kind == ModelKind::kDecoder;
  const auto table = [&](const char* name, Role role) {
    return &store_.add(name, role, {V, C}, C, V);
  };
  const ShareEmbeddings share = config.share_embeddings;
  if (!is_decoder_only) {
    const bool is_shared = share == ShareEmbeddings::kAll;
    source_table_ =
        table(is_shared ? "embedding.weight" : "encoder.embedding.weight", Role::kEmbedding);
    encoder_.emplace(store_, config, topology::StackKind::kEncoder, config.encoder_layers, false);
    if (is_shared) target_table_ = source_table_;
  }
  if (!target_table_)
    target_table_ =
        table(is_decoder_only && share == ShareEmbeddings::kAll ? "embedding.weight"
                                                                : "decoder.embedding.weight",
              Role::kEmbedding);
  decoder_.emplace(store_, config, topology::StackKind::kDecoder, config.decoder_layers,
                   !is_decoder_only);
  output_ = share == ShareEmbeddings::kNone ? table("decoder.output.weight", Role::kOutput)
                                            : target_table_;
  store_.freeze();
  sinusoids_ = ops::make_sinusoids(256, C, dtype);
}

void Transformer::initialise(uint64_t seed) { initialise_parameters(store_, config_, seed); }

std::vector<topology::BlockContext> Transformer::blocks() const {
  std::vector<topology::BlockContext> all;
  if (encoder_) all = encoder_->blocks();
  all.insert(all.end(), decoder_->blocks().begin(), decoder_->blocks().end());
  return all;
}

Var Transformer::embed(Tape& tape, const Parameter& table, uint64_t site,
                       std::span<const int32_t> tokens, std::span<const int32_t> positions,
                       kernels::RowIds rows) {
  int64_t needed = sinusoids_.rows();
  for (const int32_t p : positions) needed = std::max<int64_t>(needed, p + 1);
  if (needed > sinusoids_.rows())
    sinusoids_ = ops::make_sinusoids(2 * needed, config_.width, store_.dtype());
  return ops::embedding(tape, table, sinusoids_, tokens, positions,
                        std::sqrt(double(config_.width)),
                        tape.dropout(site, config_.dropout, rows));
}

Var Transformer::encode(Tape& tape, std::span<const int32_t> tokens,
                        std::span<const int32_t> positions, kernels::RowIds rows,
                        const kernels::Segments& segments, BlockObserver* observer) {
  require(encoder_.has_value(), "encode: a decoder-only model has no encoder");
  const Var x =
      embed(tape, *source_table_, hash_name("encoder.embedding"), tokens, positions, rows);
  return encoder_->forward(x, {.segments = &segments, .rows = rows}, observer);
}

Var Transformer::decode(Tape& tape, std::span<const int32_t> tokens,
                        std::span<const int32_t> positions, const StackPass& pass,
                        BlockObserver* observer) {
  const Var x =
      embed(tape, *target_table_, hash_name("decoder.embedding"), tokens, positions, pass.rows);
  return decoder_->forward(x, pass, observer);
}

ops::TokenLosses Transformer::losses(Tape& tape, const data::PackedBatch& batch, double smoothing,
                                     double weight, BlockObserver* observer) {
  StackPass pass{.segments = &batch.target_segments, .rows = batch.target_rows(), .causal = true};
  if (encoder_) {
    pass.memory = encode(tape, batch.source, batch.source_position, batch.source_rows(),
                         batch.source_segments, observer);
    pass.memory_segments = &batch.source_segments;
  }
  const Var decoded = decode(tape, batch.decoder_input, batch.target_position, pass, observer);
  return ops::linear_cross_entropy(decoded, *output_, batch.target, smoothing, weight);
}

Var Transformer::logits(const Var& decoded) const {
  return ops::linear(decoded, *output_, nullptr);
}

}  // namespace fathom::model
