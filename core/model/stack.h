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

  // (T, C) -> (T, C): final(run(start(embedding), all(), input)).
  [[nodiscard]] topology::Streams start(const Var& embedding) const {
    return topology_->start(embedding);
  }
  struct Segment {
    size_t first = 0, last = 0;  // blocks [first, last): all, or those of one layer
  };
  [[nodiscard]] Segment all() const { return {.first = 0, .last = blocks_.size()}; }
  [[nodiscard]] topology::Streams run(topology::Streams streams, Segment segment,
                                      const BlockInput& input,
                                      BlockObserver* observer = nullptr) const;
  [[nodiscard]] Var final(const topology::Streams& streams) const {
    return topology_->final(streams);
  }
  [[nodiscard]] const std::vector<topology::BlockContext>& blocks() const { return blocks_; }

  // One block's parts, for a profiling pass.
  [[nodiscard]] topology::Topology& rule() const { return *topology_; }
  [[nodiscard]] const Sublayer& sublayer(size_t block) const { return *sublayers_[block]; }

 private:
  // run() for one layer, keeping only its outputs.
  [[nodiscard]] topology::Streams recomputed(const topology::Streams& streams, Segment layer,
                                             const BlockInput& input,
                                             BlockObserver* observer) const;

  std::unique_ptr<topology::Topology> topology_;
  std::vector<topology::BlockContext> blocks_;
  std::vector<std::unique_ptr<Sublayer>> sublayers_;
  bool recomputes_;
};

}  // namespace fathom::model
