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
  require(c.width >= 4, "model.width: got ", c.width, ", allowed at least 4");
  require(c.heads >= 1 && c.ffn_width >= 1 && c.decoder_layers >= 1,
          "model: needs heads, ffn_width and decoder_layers");
  for (const Contradiction& wrong : contradictions(c))
    fail(wrong.key, ": got ", wrong.value, ", allowed ", wrong.allowed);
}

}  // namespace

// Declared in the order of first use, which fixes the layout of the flat buffers (see
// ParameterStore).
Transformer::Transformer(const ModelConfig& config, Device& device, DType dtype)
    : config_(config), store_(device, dtype) {
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
    encoder_.emplace(store_, config, topology::StackKind::kEncoder);
    if (is_shared) target_table_ = source_table_;
  }
  if (!target_table_)
    target_table_ =
        table(is_decoder_only && share == ShareEmbeddings::kAll ? "embedding.weight"
                                                                : "decoder.embedding.weight",
              Role::kEmbedding);
  decoder_.emplace(store_, config, topology::StackKind::kDecoder);
  output_ = share == ShareEmbeddings::kNone ? table("decoder.output.weight", Role::kOutput)
                                            : target_table_;
  store_.freeze();
  make_sinusoids(256);
}

void Transformer::initialise(uint64_t seed) { initialise_parameters(store_, config_, seed); }

std::vector<topology::BlockContext> Transformer::blocks() const {
  std::vector<topology::BlockContext> all;
  if (encoder_) all = encoder_->blocks();
  all.insert(all.end(), decoder_->blocks().begin(), decoder_->blocks().end());
  return all;
}

void Transformer::make_sinusoids(int64_t count) {
  const std::vector<double> values = ops::sinusoids(count, config_.width);
  Context& context = store_.device().compute();
  sinusoids_ = context.allocate(count, config_.width, store_.wide());
  if (store_.wide() == DType::kF64)
    context.upload(sinusoids_, std::span<const double>(values));
  else
    context.upload(sinusoids_,
                   std::span<const float>(std::vector<float>(values.begin(), values.end())));
}

Var Transformer::embed(Tape& tape, const Parameter& table, uint64_t site, const Tensor& tokens,
                       const Tensor& positions, int64_t position_limit, kernels::RowIds rows) {
  if (position_limit > sinusoids_.rows()) make_sinusoids(2 * position_limit);
  return ops::embedding(tape, table, sinusoids_, tokens, positions,
                        std::sqrt(double(config_.width)),
                        tape.dropout(site, config_.dropout, rows));
}

Var Transformer::encode(Tape& tape, const PackedRows& source, BlockObserver* observer) {
  require(encoder_.has_value(), "encode: a decoder-only model has no encoder");
  const Var x = embed(tape, *source_table_, hash_name("encoder.embedding"), source.tokens,
                      source.position, source.longest, source.ids());
  const BlockInput input = {.segments = source.segments(), .rows = source.ids()};
  return encoder_->final(encoder_->run(encoder_->start(x), encoder_->all(), input, observer));
}

Var Transformer::decode(Tape& tape, const Tensor& tokens, const Tensor& positions,
                        int64_t position_limit, const BlockInput& input, BlockObserver* observer) {
  const Var x = embed(tape, *target_table_, hash_name("decoder.embedding"), tokens, positions,
                      position_limit, input.rows);
  return decoder_->final(decoder_->run(decoder_->start(x), decoder_->all(), input, observer));
}

ops::TokenLosses Transformer::losses(Tape& tape, const DeviceBatch& batch, double smoothing,
                                     double weight, BlockObserver* observer) {
  const PackedRows& target = batch.target;
  BlockInput input{.segments = target.segments(), .rows = target.ids(), .causal = true};
  if (encoder_) {
    input.memory = encode(tape, batch.source, observer);
    input.memory_segments = batch.source.segments();
  }
  const Var decoded = decode(tape, target.tokens, target.position, target.longest, input, observer);
  return ops::linear_cross_entropy(decoded, *output_, batch.targets, smoothing, weight);
}

Var Transformer::source_keys(int layer, const Var& memory) const {
  for (const topology::BlockContext& block : decoder_->blocks())
    if (block.layer == layer && block.kind == topology::BlockKind::kCrossAttention)
      return decoder_->sublayer(block.index()).source_keys(memory);
  fail("source_keys: no cross-attention in decoder layer ", layer);
}

Var Transformer::logits(const Var& decoded) const {
  return ops::linear(decoded, *output_, nullptr);
}

}  // namespace fathom::model
