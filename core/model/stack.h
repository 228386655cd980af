// A stack of layers over one topology: the encoder or the decoder.
#pragma once

#include <memory>
#include <vector>

#include "core/model/sublayer.h"
#include "core/topology/registry.h"

namespace fathom::model {

// Sees every block of a forward pass: the watched stream before and after it, and what it added.
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
  Stack(ParameterStore& store, const ModelConfig& config, topology::StackKind kind, int layers,
        bool attends_to_memory);

  // (T, C) -> (T, C)
  [[nodiscard]] Var forward(const Var& embedding, const BlockInput& input,
                            BlockObserver* observer = nullptr) const;
  [[nodiscard]] const std::vector<topology::BlockContext>& blocks() const { return blocks_; }

 private:
  std::unique_ptr<topology::Topology> topology_;
  std::vector<topology::BlockContext> blocks_;
  std::vector<std::unique_ptr<Sublayer>> sublayers_;
};

}  // namespace fathom::model
