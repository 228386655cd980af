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

Norm::Norm(ParameterStore& store, const std::string& name, int64_t width, double eps)
    : gain_(&store.add(name + ".gain", Role::kNormGain, {width})),
      bias_(&store.add(name + ".bias", Role::kNormBias, {width})),
      eps_(eps) {}

}  // namespace fathom::topology
