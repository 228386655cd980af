#include "core/model/stack.h"

namespace fathom::model {
namespace {

std::vector<topology::BlockContext> blocks_of(topology::StackKind stack, int layers,
                                              bool attends_to_memory) {
  std::vector<topology::BlockKind> kinds = {topology::BlockKind::kSelfAttention,
                                            topology::BlockKind::kFeedForward};
  if (attends_to_memory) kinds.insert(kinds.begin() + 1, topology::BlockKind::kCrossAttention);
  std::vector<topology::BlockContext> blocks;
  for (int layer = 1; layer <= layers; ++layer)
    for (size_t i = 0; i < kinds.size(); ++i)
      blocks.push_back({.stack = stack,
                        .layer = layer,
                        .kind = kinds[i],
                        .index_in_layer = int(i) + 1,
                        .block = int(blocks.size()) + 1,
                        .block_count = layers * int(kinds.size())});
  return blocks;
}

}  // namespace

Stack::Stack(ParameterStore& store, const ModelConfig& config, topology::StackKind kind, int layers,
             bool attends_to_memory)
    : topology_(topology::make_topology(config.topology, config.topology_options)),
      blocks_(blocks_of(kind, layers, attends_to_memory)) {
  for (const topology::BlockContext& block : blocks_) {
    topology_->declare_block(store, block, config.width);
    sublayers_.push_back(make_sublayer(store, config, block));
  }
  topology_->declare_final(store, kind, config.width);
}

Var Stack::forward(const Var& embedding, const BlockInput& input, BlockObserver* observer) const {
  topology::State state = topology_->start(embedding);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Var u = topology_->in(state, blocks_[i]);
    const Var o = sublayers_[i]->forward(u, input);
    topology::State next = topology_->out(state, o, blocks_[i]);
    if (observer) observer->on_block(blocks_[i], state.x.value(), o.value(), next.x.value());
    state = std::move(next);
  }
  return topology_->final(state);
}

}  // namespace fathom::model
