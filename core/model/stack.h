// A stack of layers over one topology: the encoder or the decoder.
#pragma once

#include <memory>
#include <vector>

#include "core/model/sublayer.h"
#include "core/topology/registry.h"

namespace fathom::model {

// Called for every block of a forward pass: the watched stream before and after it, and its output.
// All (T, C); valid during the call only.
class BlockObserver {
 public:
  virtual ~BlockObserver() = default;
  virtual void on_block(const topology::BlockContext& block, const Tensor& x, const Tensor& o,
                        const Tensor& next) = 0;
};

class Stack {
 public:
  // Encoder layers have two blocks; decoder layers three with a source to attend to, else two.
  Stack(ParameterStore& store, const ModelConfig& config, topology::StackKind kind);

  // (T, C) -> (T, C)
  [[nodiscard]] Var forward(const Var& embedding, const BlockInput& input,
                            BlockObserver* observer = nullptr) const;
  [[nodiscard]] const std::vector<topology::BlockContext>& blocks() const { return blocks_; }

  // One block's parts, for a profiling pass.
  [[nodiscard]] topology::Topology& rule() const { return *topology_; }
  [[nodiscard]] const Sublayer& sublayer(size_t block) const { return *sublayers_[block]; }

 private:
  // Applies blocks [first, last) to the streams.
  [[nodiscard]] topology::Streams run(topology::Streams streams, size_t first, size_t last,
                                      const BlockInput& input, BlockObserver* observer) const;
  // The same, keeping only the outputs.
  [[nodiscard]] topology::Streams recomputed(const topology::Streams& streams, size_t first,
                                             size_t last, const BlockInput& input,
                                             BlockObserver* observer) const;

  std::unique_ptr<topology::Topology> topology_;
  std::vector<topology::BlockContext> blocks_;
  std::vector<std::unique_ptr<Sublayer>> sublayers_;
  bool recomputes_;
};

}  // namespace fathom::model
