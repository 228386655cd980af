// Where the norms sit in the residual stream, and nothing else. A topology is a rule
//
//   u = in(state);  o = f(u);  state = out(state, o)      for every block, then final(state)
//
// with one object per stack, which owns the norms it uses. It is forward code: the tape supplies
// the derivatives. Nothing outside this folder knows which topology runs; to add one, write one
// file and enter it in registry.cpp.
#pragma once

#include <cstdint>
#include <string>

#include "core/ops/elementwise.h"
#include "core/ops/layer_norm.h"

namespace fathom::topology {

enum class StackKind { kEncoder, kDecoder };
enum class BlockKind { kSelfAttention, kCrossAttention, kFeedForward };
[[nodiscard]] const char* to_string(StackKind kind);
[[nodiscard]] const char* to_string(BlockKind kind);

// A block is one sublayer with its residual connection; everything counts from 1.
struct BlockContext {
  StackKind stack = StackKind::kEncoder;
  int layer = 1;
  BlockKind kind = BlockKind::kSelfAttention;
  int index_in_layer = 1;
  int block = 1;        // in the stack
  int block_count = 1;  // of the stack
};
// "encoder.3.feed_forward"
[[nodiscard]] std::string name_of(const BlockContext& block);

// The residual streams, each (T, C). `x` is what the layer statistics watch.
struct State {
  Var x;
  Var dual = {};  // a second stream, where the topology has one
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
  virtual ~Topology() = default;

  // Called once for every block, in order, and once at the end: declare what is needed there.
  virtual void declare_block(ParameterStore&, const BlockContext&, int64_t /*width*/) {}
  virtual void declare_final(ParameterStore&, StackKind, int64_t /*width*/) {}

  [[nodiscard]] virtual State start(const Var& embedding) const { return {.x = embedding}; }
  [[nodiscard]] virtual Var in(const State& state, const BlockContext&) const = 0;
  // `o` is the block's output after dropout.
  [[nodiscard]] virtual State out(const State& state, const Var& o, const BlockContext&) const = 0;
  [[nodiscard]] virtual Var final(const State& state) const = 0;
};

}  // namespace fathom::topology
