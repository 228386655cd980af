#include "launcher/config/show.h"

#include <functional>

#include <fmt/format.h>

#include "core/base/hash.h"
#include "launcher/config/schema.h"

namespace fathom::launcher {

namespace {

// `note`: what stands behind a value.
std::string to_yaml(const Config& config,
                    const std::function<std::string(const Key&, const std::string&)>& note) {
  std::string out;
  std::string open_map;  // dotted path of the map that the last line stands in
  for (const Key& key : schema()) {
    const auto value = key.get(config);
    if (!value) continue;
    const size_t point = key.name.rfind('.');
    const std::string map = key.name.substr(0, point), section = section_of(map);
    const bool is_nested = map != section;
    if (map != open_map) {
      if (section_of(open_map) != section) out += section + ":\n";
      if (is_nested) out += "  " + map.substr(section.size() + 1) + ":\n";
      open_map = map;
    }
    out += fmt::format("{}{}: {}{}\n", is_nested ? "    " : "  ", key.name.substr(point + 1),
                       *value, note(key, *value));
  }
  return out;
}

}  // namespace

std::string to_yaml(const Config& config) {
  return to_yaml(config, [](const Key&, const std::string&) { return ""; });
}

std::string to_marked_yaml(const Config& config) {
  Config plain;
  plain.run = {.name = config.run.name, .directory = "runs/" + config.run.name};
  Config of_its_topology;  // whose options have defaults of their own
  of_its_topology.model.topology = config.model.topology;
  return to_yaml(config, [&](const Key& key, const std::string& value) {
    const bool is_option = key.name.starts_with("model.topology_options.");
    const auto by_default = key.get(is_option ? of_its_topology : plain);
    return by_default && *by_default != value ? "  # default " + *by_default : "";
  });
}

std::string config_hash(const Config& config) {
  return fmt::format("{:016x}", hash_name(to_yaml(config)));
}

std::vector<Difference> differences(const Config& old_config, const Config& new_config) {
  std::vector<Difference> found;
  for (const Key& key : schema()) {
    const auto before = key.get(old_config), after = key.get(new_config);
    if (before == after) continue;
    found.push_back({key.name, before.value_or("unset"), after.value_or("unset")});
  }
  return found;
}

}  // namespace fathom::launcher
