// Where the norms and the residual connections are. A topology is a rule
//
//   u = in(streams);  o = f(u);  streams = out(streams, o)      for every block, then
//   final(streams)
//
// with one object per stack, which owns the parameters it declares. It has any number of residual
// streams, may put norms or scales at the inner points of a sublayer, and decides the scale of
// initial values. It is forward code: the tape supplies the derivatives. Nothing outside this
// folder knows which topology runs; to add one, write one file and enter it in registry.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/elementwise.h"
#include "core/ops/layer_norm.h"
#include "core/ops/weighted.h"

namespace fathom::topology {

enum class StackKind { kEncoder, kDecoder };
enum class BlockKind { kSelfAttention, kCrossAttention, kFeedForward };
[[nodiscard]] const char* to_string(StackKind kind);
[[nodiscard]] const char* to_string(BlockKind kind);

// Both stacks, whichever of them the topology object belongs to.
struct ModelShape {
  int encoder_layers = 0;  // 0: decoder-only
  int decoder_layers = 0;
  int64_t width = 0;
  int64_t ffn_width = 0;

  [[nodiscard]] int layers(StackKind stack) const {
    return stack == StackKind::kEncoder ? encoder_layers : decoder_layers;
  }
  [[nodiscard]] int blocks_per_layer(StackKind stack) const {
    return stack == StackKind::kDecoder && encoder_layers > 0 ? 3 : 2;
  }
};

// A block is one sublayer with its residual connection; everything counts from 1.
struct BlockContext {
  StackKind stack = StackKind::kEncoder;
  int layer = 1;
  BlockKind kind = BlockKind::kSelfAttention;
  int index_in_layer = 1;
  int block = 1;        // in the stack
  int block_count = 1;  // of the stack
  int blocks_in_layer = 2;

  [[nodiscard]] size_t index() const { return size_t(block - 1); }  // in the stack, from 0
  [[nodiscard]] bool is_last_in_layer() const { return index_in_layer == blocks_in_layer; }
};
// "encoder.3.feed_forward"
[[nodiscard]] std::string name_of(const BlockContext& block);

// The residual streams, each (T, C).
using Streams = std::vector<Var>;

// Parts of a block's matrices whose initial values a topology may scale separately.
enum class Part { kQuery, kKey, kValue, kAttentionOut, kFc1, kFc2 };

// Where a sublayer asks for norms or scales: before its last projection.
enum class InnerPoint {
  kHeads,   // attention's weighted sums of values, heads side by side (T, C)
  kHidden,  // the feed-forward block after activation and dropout (T, F)
};

// A layer norm with its parameters.
class Norm {
 public:
  Norm(ParameterStore& store, const std::string& name, int64_t width, double eps = 1e-5);
  [[nodiscard]] Var operator()(const Var& x) const {
    return ops::layer_norm(x, *gain_, *bias_, eps_);
  }
  [[nodiscard]] Var of_sum(const Var& x, const Var& o) const {
    return ops::add_layer_norm(x, o, *gain_, *bias_, eps_);
  }

 private:
  const Parameter* gain_;
  const Parameter* bias_;
  double eps_;
};

class Topology {
 public:
  Topology(const ModelShape& shape, StackKind stack) : shape_(shape), stack_(stack) {}
  virtual ~Topology() = default;
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  // Called once for every block, in order, and once at the end: declare what is needed there.
  // declare_inner() comes where the sublayer uses it, with the width of the point.
  virtual void declare_block(ParameterStore&, const BlockContext&) {}
  virtual void declare_inner(ParameterStore&, const BlockContext&, InnerPoint, int64_t /*width*/) {}
  virtual void declare_final(ParameterStore&) {}

  // A factor on the initial values of a part of the block's matrices.
  [[nodiscard]] virtual double initial_gain(const BlockContext&, Part) const { return 1; }

  [[nodiscard]] virtual Streams start(const Var& embedding) const { return {embedding}; }
  [[nodiscard]] virtual Var in(const Streams& streams, const BlockContext&) const = 0;
  [[nodiscard]] virtual Var inner(const Var& x, const BlockContext&, InnerPoint) const { return x; }
  // `o` is the block's output after dropout.
  [[nodiscard]] virtual Streams out(const Streams& streams, const Var& o,
                                    const BlockContext&) const = 0;
  [[nodiscard]] virtual Var final(const Streams& streams) const = 0;
  // The stream that the layer statistics are about.
  [[nodiscard]] virtual const Var& watched(const Streams& streams) const { return streams[0]; }

  // Profiling (for a new run, before its first step): the blocks are run one by one over batch 0,
  // and after each block's f the rule gets what was measured, before `out` is called. What it
  // returns is written to every entry of the parameters named.
  struct Measured {
    double stream_variance = 0;  // of the watched stream before the block: over features, mean over
    double output_variance = 0;  // all tokens of the batch; of o
  };
  using Values = std::vector<std::pair<const Parameter*, double>>;
  [[nodiscard]] virtual bool wants_profile() const { return false; }
  [[nodiscard]] virtual Values profiled(const BlockContext&, const Measured&) { return {}; }

 protected:
  [[nodiscard]] const ModelShape& shape() const { return shape_; }
  [[nodiscard]] StackKind stack() const { return stack_; }
  [[nodiscard]] int64_t width() const { return shape_.width; }
  // Learned weights of a block, at most one vector, declared with their initial values.
  void declare_weights(ParameterStore& store, const BlockContext& block, const char* name,
                       std::vector<double> initial);
  [[nodiscard]] const Parameter& weights(const BlockContext& block) const {
    return *weights_[block.index()];
  }
  // Of the current training step, or of the step the weights are from.
  [[nodiscard]] static int64_t update_of(const Var& x) { return x.tape().mode().update; }

 private:
  ModelShape shape_;
  StackKind stack_;
  std::vector<const Parameter*> weights_;  // by block; null where it has none
};

enum class FinalNorm { kNone, kPresent };

// The base of most topologies: a norm for every block, and optionally one at the end.
class NormedTopology : public Topology {
 public:
  NormedTopology(const ModelShape& shape, StackKind stack, FinalNorm final_norm,
                 double final_eps = 1e-5)
      : Topology(shape, stack), has_final_(final_norm == FinalNorm::kPresent), eps_(final_eps) {}

  void declare_block(ParameterStore& store, const BlockContext& block) override;
  void declare_final(ParameterStore& store) override;

 protected:
  [[nodiscard]] const Norm& norm(const BlockContext& block) const { return norms_[block.index()]; }
  [[nodiscard]] const Norm& final_norm() const { return norms_.back(); }

 private:
  bool has_final_;
  double eps_;
  std::vector<Norm> norms_;  // of the blocks, then the final one
};

}  // namespace fathom::topology
