#include "core/model/sublayer.h"

#include "core/ops/attention.h"
#include "core/ops/linear.h"

namespace fathom::model {
namespace {

// y = x w^T + b with w (out, in).
struct Projection {
  const Parameter* w;
  const Parameter* b;

  // The rows of w are `gains.size()` equal parts, each with a gain on its initial values.
  Projection(ParameterStore& store, const std::string& name, Role role, int64_t in, int64_t out,
             const std::vector<double>& gains) {
    Parameter& weight = store.add(name + ".weight", role, {out, in}, in, out);
    const int64_t rows = out / int64_t(gains.size());
    for (size_t i = 0; i < gains.size(); ++i)
      weight.row_gains.push_back({.first = int64_t(i) * rows, .count = rows, .gain = gains[i]});
    w = &weight;
    b = &store.add(name + ".bias",
                   role == Role::kAttentionOut ? Role::kAttentionOutBias : Role::kBias, {out}, in,
                   out);
  }
};

using topology::InnerPoint;
using topology::Part;

// Numbers a block's dropouts; independent of everything but its name.
uint64_t site_of(const topology::BlockContext& block, const char* which) {
  return hash_name(topology::name_of(block) + "/" + which);
}

// The last projection of a sublayer, after what the topology declares before it.   (in) -> (C)
Projection last_projection(ParameterStore& store, const ModelConfig& config,
                           const topology::BlockContext& block, topology::Topology& topology) {
  const bool is_attention = block.kind != topology::BlockKind::kFeedForward;
  const int64_t in = is_attention ? config.width : config.ffn_width;
  topology.declare_inner(store, block, is_attention ? InnerPoint::kHeads : InnerPoint::kHidden, in);
  return {store,
          topology::name_of(block) + (is_attention ? ".out" : ".fc2"),
          is_attention ? Role::kAttentionOut : Role::kFeedForwardOut,
          in,
          config.width,
          {topology.initial_gain(block, is_attention ? Part::kAttentionOut : Part::kFc2)}};
}

class SelfAttention final : public Sublayer {
 public:
  SelfAttention(ParameterStore& store, const ModelConfig& config,
                const topology::BlockContext& block, topology::Topology& topology)
      : topology_(topology),
        block_(block),
        qkv_(store, topology::name_of(block) + ".qkv", Role::kAttentionIn, config.width,
             3 * config.width,
             {topology.initial_gain(block, Part::kQuery), topology.initial_gain(block, Part::kKey),
              topology.initial_gain(block, Part::kValue)}),
        out_(last_projection(store, config, block, topology)),
        heads_(config.heads),
        dropout_(config.dropout),
        attention_dropout_(config.attention_dropout),
        layer_(size_t(block.layer - 1)),
        site_(site_of(block, "output")),
        attention_site_(site_of(block, "attention")) {}

  Var forward(const Var& u, const BlockInput& input) const override {
    Tape& tape = u.tape();
    const Var qkv = ops::linear(u, *qkv_.w, qkv_.b);  // (T, 3 C)
    const Var y = input.cache ? decode(qkv, *input.cache, input)
                              : ops::self_attention(
                                    qkv,
                                    {.queries = input.segments,
                                     .keys = input.segments,
                                     .heads = heads_,
                                     .causal = input.causal},
                                    tape.dropout(attention_site_, attention_dropout_, input.rows));
    return ops::linear(topology_.inner(y, block_, InnerPoint::kHeads), *out_.w, out_.b,
                       {.dropout = tape.dropout(site_, dropout_, input.rows)});
  }

 private:
  // Appends this step's keys and values to the cache and attends to all of it.
  Var decode(const Var& qkv, const DecoderCache& cache, const BlockInput& input) const {
    Tape& tape = qkv.tape();
    const Tensor& all = qkv.value();  // (T, 3 C)
    const int64_t C = all.cols() / 3;
    const Tensor& kv = cache.layers[layer_].self;  // (N, 2 C)
    tape.context().run(&autograd::Kernels::append_rows,
                       {.from = all.columns(C, 2 * C), .to = kv, .index = cache.write_row});
    return ops::cross_attention(
        tape.constant(all.columns(0, C)), tape.constant(kv),
        {.queries = input.segments, .keys = cache.self_keys, .heads = heads_, .causal = false});
  }

  const topology::Topology& topology_;
  topology::BlockContext block_;
  Projection qkv_, out_;
  int64_t heads_;
  double dropout_, attention_dropout_;
  size_t layer_;
  uint64_t site_, attention_site_;
};

class CrossAttention final : public Sublayer {
 public:
  CrossAttention(ParameterStore& store, const ModelConfig& config,
                 const topology::BlockContext& block, topology::Topology& topology)
      : topology_(topology),
        block_(block),
        q_(store, topology::name_of(block) + ".q", Role::kQuery, config.width, config.width,
           {topology.initial_gain(block, Part::kQuery)}),
        kv_(store, topology::name_of(block) + ".kv", Role::kKeyValue, config.width,
            2 * config.width,
            {topology.initial_gain(block, Part::kKey), topology.initial_gain(block, Part::kValue)}),
        out_(last_projection(store, config, block, topology)),
        heads_(config.heads),
        dropout_(config.dropout),
        attention_dropout_(config.attention_dropout),
        layer_(size_t(block.layer - 1)),
        site_(site_of(block, "output")),
        attention_site_(site_of(block, "attention")) {}

  Var forward(const Var& u, const BlockInput& input) const override {
    Tape& tape = u.tape();
    const Var q = ops::linear(u, *q_.w, q_.b);  // (T, C)
    const Var kv = input.cache ? tape.constant(input.cache->layers[layer_].cross)
                               : ops::linear(input.memory, *kv_.w, kv_.b);  // (S, 2 C)
    const Var y = ops::cross_attention(
        q, kv,
        {.queries = input.segments,
         .keys = input.cache ? input.cache->memory_keys : input.memory_segments,
         .heads = heads_,
         .causal = false},
        tape.dropout(attention_site_, attention_dropout_, input.rows));
    return ops::linear(topology_.inner(y, block_, InnerPoint::kHeads), *out_.w, out_.b,
                       {.dropout = tape.dropout(site_, dropout_, input.rows)});
  }
  Var source_keys(const Var& memory) const override { return ops::linear(memory, *kv_.w, kv_.b); }

 private:
  const topology::Topology& topology_;
  topology::BlockContext block_;
  Projection q_, kv_, out_;
  int64_t heads_;
  double dropout_, attention_dropout_;
  size_t layer_;
  uint64_t site_, attention_site_;
};

class FeedForward final : public Sublayer {
 public:
  FeedForward(ParameterStore& store, const ModelConfig& config, const topology::BlockContext& block,
              topology::Topology& topology)
      : topology_(topology),
        block_(block),
        fc1_(store, topology::name_of(block) + ".fc1", Role::kFeedForwardIn, config.width,
             config.ffn_width, {topology.initial_gain(block, Part::kFc1)}),
        fc2_(last_projection(store, config, block, topology)),
        activation_(config.activation),
        dropout_(config.dropout),
        activation_dropout_(config.activation_dropout),
        site_(site_of(block, "output")),
        activation_site_(site_of(block, "activation")) {}

  Var forward(const Var& u, const BlockInput& input) const override {
    Tape& tape = u.tape();
    const kernels::Dropout hidden = tape.dropout(activation_site_, activation_dropout_, input.rows);
    const Var h = activation_ == Activation::kRelu
                      ? ops::linear(u, *fc1_.w, fc1_.b, {.relu = true, .dropout = hidden})
                      : ops::gelu(ops::linear(u, *fc1_.w, fc1_.b), hidden);  // (T, F)
    return ops::linear(topology_.inner(h, block_, InnerPoint::kHidden), *fc2_.w, fc2_.b,
                       {.dropout = tape.dropout(site_, dropout_, input.rows)});
  }

 private:
  const topology::Topology& topology_;
  topology::BlockContext block_;
  Projection fc1_, fc2_;
  Activation activation_;
  double dropout_, activation_dropout_;
  uint64_t site_, activation_site_;
};

}  // namespace

Var Sublayer::source_keys(const Var&) const { fail("source_keys: not a cross-attention block"); }

std::unique_ptr<Sublayer> make_sublayer(ParameterStore& store, const ModelConfig& config,
                                        const topology::BlockContext& block,
                                        topology::Topology& topology) {
  switch (block.kind) {
    case topology::BlockKind::kSelfAttention:
      return std::make_unique<SelfAttention>(store, config, block, topology);
    case topology::BlockKind::kCrossAttention:
      return std::make_unique<CrossAttention>(store, config, block, topology);
    case topology::BlockKind::kFeedForward:
      return std::make_unique<FeedForward>(store, config, block, topology);
  }
  fail("make_sublayer: unknown kind of block");
}

}  // namespace fathom::model
