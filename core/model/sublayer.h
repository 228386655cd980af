// The body f of a block: attention or feed-forward, including dropout on its output. Norms and the
// residual connection belong to the topology.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/autograd/tape.h"
#include "core/kernels/segments.h"
#include "core/model/config.h"
#include "core/topology/topology.h"

namespace fathom::model {

// Keys and values of one decoder layer, side by side.
struct LayerCache {
  Tensor self;   // (N, 2 C): of the tokens decoded so far
  Tensor cross;  // (S, 2 C): of the source
};
// Incremental decoding: a step has one row for each sentence or hypothesis.
struct DecoderCache {
  std::vector<LayerCache> layers;
  Tensor write_row;                          // (1, T) i32: in `self`, for each row of this step
  kernels::Segments self_keys, memory_keys;  // what each row sees, its own token included
};

// What a stack's blocks read of the batch. Everything pointed to outlives the tape.
struct BlockInput {
  kernels::Segments segments;
  kernels::RowIds rows = {};
  bool causal = false;
  Var memory = {};  // encoder output (S, C), for cross-attention
  kernels::Segments memory_segments = {};
  const DecoderCache* cache = nullptr;  // set while decoding, when `memory` is not read
};

class Sublayer {
 public:
  virtual ~Sublayer() = default;
  // (T, C) -> (T, C)
  [[nodiscard]] virtual Var forward(const Var& u, const BlockInput& input) const = 0;
  // For a cache: keys and values of an encoder output. (S, C) -> (S, 2 C). Cross-attention only.
  [[nodiscard]] virtual Var source_keys(const Var& memory) const;
};

// Declares the parameters under name_of(block), in the order forward uses them. `topology` outlives
// the sublayer: it decides about the inner points and the initial values.
[[nodiscard]] std::unique_ptr<Sublayer> make_sublayer(ParameterStore& store,
                                                      const ModelConfig& config,
                                                      const topology::BlockContext& block,
                                                      topology::Topology& topology);

}  // namespace fathom::model
