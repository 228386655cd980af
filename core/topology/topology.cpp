#include "core/topology/topology.h"

namespace fathom::topology {

const char* to_string(StackKind kind) {
  return kind == StackKind::kEncoder ? "encoder" : "decoder";
}

const char* to_string(BlockKind kind) {
  switch (kind) {
    case BlockKind::kSelfAttention:
      return "self_attention";
    case BlockKind::kCrossAttention:
      return "cross_attention";
    case BlockKind::kFeedForward:
      return "feed_forward";
  }
  return "?";
}

std::string name_of(const BlockContext& block) {
  return join(to_string(block.stack), ".", block.layer, ".", to_string(block.kind));
}

void Topology::declare_weights(ParameterStore& store, const BlockContext& block, const char* name,
                               std::vector<double> initial) {
  Parameter& p =
      store.add(join(name_of(block), ".", name), Role::kMixing, {int64_t(initial.size())});
  p.initial = std::move(initial);
  weights_.resize(block.index() + 1);
  weights_.back() = &p;
}

void NormedTopology::declare_block(ParameterStore& store, const BlockContext& block) {
  norms_.emplace_back(store, name_of(block) + ".norm", width());
}

void NormedTopology::declare_final(ParameterStore& store) {
  if (has_final_)
    norms_.emplace_back(store, join(to_string(stack()), ".final_norm"), width(), eps_);
}

Norm::Norm(ParameterStore& store, const std::string& name, int64_t width, double eps)
    : gain_(&store.add(name + ".gain", Role::kNormGain, {width})),
      bias_(&store.add(name + ".bias", Role::kNormBias, {width})),
      eps_(eps) {}

}  // namespace fathom::topology
