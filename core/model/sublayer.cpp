#include "core/model/sublayer.h"

#include <cstring>

#include "core/ops/attention.h"
#include "core/ops/linear.h"

namespace fathom::model {
namespace {

// y = x w^T + b with w (out, in).
struct Affine {
  const Parameter* w;
  const Parameter* b;

  Affine(ParameterStore& store, const std::string& name, Role role, int64_t in, int64_t out)
      : w(&store.add(name + ".weight", role, {out, in}, in, out)),
        b(&store.add(name + ".bias",
                     role == Role::kAttentionOut ? Role::kAttentionOutBias : Role::kBias, {out}, in,
                     out)) {}
  Var operator()(const Var& x, ops::LinearEpilogue epilogue = {}) const {
    return ops::linear(x, *w, b, epilogue);
  }
};

// Numbers a block's dropouts; independent of everything but its name.
uint64_t site_of(const topology::BlockContext& block, const char* which) {
  return hash_name(topology::name_of(block) + "/" + which);
}

class SelfAttention final : public Sublayer {
 public:
  SelfAttention(ParameterStore& store, const ModelConfig& config,
                const topology::BlockContext& block)
      : qkv_(store, topology::name_of(block) + ".qkv", Role::kAttentionIn, config.width,
             3 * config.width),
        out_(store, topology::name_of(block) + ".out", Role::kAttentionOut, config.width,
             config.width),
        heads_(config.heads),
        dropout_(config.dropout),
        attention_dropout_(config.attention_dropout),
        layer_(size_t(block.layer - 1)),
        site_(site_of(block, "output")),
        attention_site_(site_of(block, "attention")) {}

  Var forward(const Var& u, const StackPass& pass) const override {
    Tape& tape = u.tape();
    const Var qkv = qkv_(u);  // (T, 3 C)
    const Var y = pass.cache ? decode(qkv, *pass.cache, pass)
                             : ops::self_attention(
                                   qkv,
                                   {.queries = pass.segments,
                                    .keys = pass.segments,
                                    .heads = heads_,
                                    .causal = pass.causal},
                                   tape.dropout(attention_site_, attention_dropout_, pass.rows));
    return out_(y, {.dropout = tape.dropout(site_, dropout_, pass.rows)});
  }

 private:
  // Appends this step's keys and values to the cache and attends to all of it.
  Var decode(const Var& qkv, DecoderCache& cache, const StackPass& pass) const {
    const Tensor& all = qkv.value();
    const int64_t C = all.cols() / 3;
    const Tensor& kv = cache.layers[layer_].self;
    const size_t row_bytes = size_t(2 * C * size_of(all.dtype()));
    visit_float(all.dtype(), [&]<class T>() {
      for (int64_t r = 0; r < all.rows(); ++r)
        std::memcpy(kv.row<T>(cache.write_row[size_t(r)]), all.row<T>(r) + C, row_bytes);
    });
    Tape& tape = qkv.tape();
    return ops::cross_attention(
        tape.constant(all.columns(0, C)), tape.constant(kv),
        {.queries = pass.segments, .keys = &cache.self_keys, .heads = heads_, .causal = false});
  }

  Affine qkv_, out_;
  int64_t heads_;
  double dropout_, attention_dropout_;
  size_t layer_;
  uint64_t site_, attention_site_;
};

class CrossAttention final : public Sublayer {
 public:
  CrossAttention(ParameterStore& store, const ModelConfig& config,
                 const topology::BlockContext& block)
      : q_(store, topology::name_of(block) + ".q", Role::kQuery, config.width, config.width),
        kv_(store, topology::name_of(block) + ".kv", Role::kKeyValue, config.width,
            2 * config.width),
        out_(store, topology::name_of(block) + ".out", Role::kAttentionOut, config.width,
             config.width),
        heads_(config.heads),
        dropout_(config.dropout),
        attention_dropout_(config.attention_dropout),
        layer_(size_t(block.layer - 1)),
        site_(site_of(block, "output")),
        attention_site_(site_of(block, "attention")) {}

  Var forward(const Var& u, const StackPass& pass) const override {
    Tape& tape = u.tape();
    const Var q = q_(u);          // (T, C)
    const Var kv = memory(pass);  // (S, 2 C)
    const Var y =
        ops::cross_attention(q, kv,
                             {.queries = pass.segments,
                              .keys = pass.cache ? &pass.cache->memory_keys : pass.memory_segments,
                              .heads = heads_,
                              .causal = false},
                             tape.dropout(attention_site_, attention_dropout_, pass.rows));
    return out_(y, {.dropout = tape.dropout(site_, dropout_, pass.rows)});
  }

 private:
  // Keys and values of the source; while decoding they are made once and kept.
  Var memory(const StackPass& pass) const {
    if (!pass.cache) return kv_(pass.memory);
    Var& kept = pass.cache->layers[layer_].cross;
    if (!kept.is_set()) kept = kv_(pass.memory);
    return kept;
  }

  Affine q_, kv_, out_;
  int64_t heads_;
  double dropout_, attention_dropout_;
  size_t layer_;
  uint64_t site_, attention_site_;
};

class FeedForward final : public Sublayer {
 public:
  FeedForward(ParameterStore& store, const ModelConfig& config, const topology::BlockContext& block)
      : fc1_(store, topology::name_of(block) + ".fc1", Role::kFeedForwardIn, config.width,
             config.ffn_width),
        fc2_(store, topology::name_of(block) + ".fc2", Role::kFeedForwardOut, config.ffn_width,
             config.width),
        activation_(config.activation),
        dropout_(config.dropout),
        activation_dropout_(config.activation_dropout),
        site_(site_of(block, "output")),
        activation_site_(site_of(block, "activation")) {}

  Var forward(const Var& u, const StackPass& pass) const override {
    Tape& tape = u.tape();
    const kernels::Dropout hidden = tape.dropout(activation_site_, activation_dropout_, pass.rows);
    const Var h = activation_ == Activation::kRelu ? fc1_(u, {.relu = true, .dropout = hidden})
                                                   : ops::gelu(fc1_(u), hidden);  // (T, F)
    return fc2_(h, {.dropout = tape.dropout(site_, dropout_, pass.rows)});
  }

 private:
  Affine fc1_, fc2_;
  Activation activation_;
  double dropout_, activation_dropout_;
  uint64_t site_, activation_site_;
};

}  // namespace

std::unique_ptr<Sublayer> make_sublayer(ParameterStore& store, const ModelConfig& config,
                                        const topology::BlockContext& block) {
  switch (block.kind) {
    case topology::BlockKind::kSelfAttention:
      return std::make_unique<SelfAttention>(store, config, block);
    case topology::BlockKind::kCrossAttention:
      return std::make_unique<CrossAttention>(store, config, block);
    case topology::BlockKind::kFeedForward:
      return std::make_unique<FeedForward>(store, config, block);
  }
  fail("make_sublayer: unknown kind of block");
}

}  // namespace fathom::model
