#include "core/topology/topology.h"

#include <charconv>
#include <cmath>

namespace fathom::core {

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

double TopologyOptions::number(const std::string& key, double fallback,
                               std::optional<double> above) {
  const auto node = left_.extract(key);
  if (node.empty()) return fallback;
  const std::string& text = node.mapped();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size() && std::isfinite(value) &&
              (!above || value > *above),
          "model.topology_options.", key, ": got ", text, ", expected a ",
          above ? join("number above ", *above) : "finite number");
  return value;
}

std::string TopologyOptions::choice(const std::string& key,
                                    const std::vector<std::string>& allowed) {
  const auto node = left_.extract(key);
  if (node.empty()) return allowed.front();
  std::string list;
  for (const std::string& name : allowed) {
    if (node.mapped() == name) return name;
    list += (list.empty() ? "" : ", ") + name;
  }
  fail("model.topology_options.", key, ": got ", node.mapped(), ", expected one of: ", list);
}

void TopologyOptions::finish() const {
  if (left_.empty()) return;
  fail("model.topology_options.", left_.begin()->first, ": topology ", topology_,
       " has no such option");
}

}  // namespace fathom::core
