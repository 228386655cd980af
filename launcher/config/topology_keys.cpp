#include <algorithm>

#include "core/base/error.h"
#include "core/topology/registry.h"
#include "launcher/config/schema.h"

namespace fathom::launcher {
namespace {

using topology::TopologyInfo, topology::TopologyOption;

// A number is normalised, so that `2` and `2.0` are the same config.
std::optional<std::string> parse_option(const TopologyOption& option, const YamlNode& node) {
  if (!node.is_scalar() || !option.accepts(node.text)) return std::nullopt;
  if (!option.choices.empty()) return node.text;
  const Grammar<double> grammar = number({});
  const auto value = grammar.parse(node);
  return value ? std::optional(grammar.format(*value)) : std::nullopt;
}

// Topologies may share a name. Their key takes what one of them accepts; what the chosen one does
// not accept is refused in resolve.cpp.
bool set_option(const std::string& name, Config& config, const YamlNode& node) {
  for (const TopologyInfo& topology : topology::topologies()) {
    const TopologyOption* option = topology::find_option(topology.options, name);
    const auto text = option ? parse_option(*option, node) : std::nullopt;
    if (!text) continue;
    config.model.topology_options[name] = *text;
    return true;
  }
  return false;
}

std::optional<std::string> get_option(const std::string& name, const Config& config) {
  const auto& known = topology::find_topology(config.model.topology).options;
  const TopologyOption* option = topology::find_option(known, name);
  if (!option) return std::nullopt;
  const auto given = config.model.topology_options.find(name);
  return given == config.model.topology_options.end() ? option->default_value : given->second;
}

Key option_key(const std::string& name, const TopologyOption& first) {
  Key key = {.name = "model.topology_options." + name,
             .type = first.choices.empty() ? "number" : "choice",
             .allowed = first.allowed(),
             .meaning = "",
             .may_change = MayChange::kNever,
             .choices = first.choices};
  for (const TopologyInfo& topology : topology::topologies()) {
    const TopologyOption* option = topology::find_option(topology.options, name);
    if (!option) continue;
    // The table's column of defaults is that of an empty config.
    const bool is_shown = topology.name == Config{}.model.topology;
    key.meaning += join(key.meaning.empty() ? "" : " ", topology.name, ": ", option->meaning,
                        is_shown ? "" : " (default " + option->default_value + ")", ".");
    if (option->allowed() != first.allowed())
      key.allowed += join("; with ", topology.name, " ", option->allowed());
  }
  key.set = [name](Config& config, const YamlNode& node) { return set_option(name, config, node); };
  key.get = [name](const Config& config) { return get_option(name, config); };
  return key;
}

}  // namespace

std::vector<Key> topology_option_keys() {
  std::vector<Key> keys;
  for (const TopologyInfo& topology : topology::topologies())
    for (const TopologyOption& option : topology.options) {
      const Key key = option_key(option.name, option);
      if (std::ranges::find(keys, key.name, &Key::name) == keys.end()) keys.push_back(key);
    }
  return keys;
}

}  // namespace fathom::launcher
