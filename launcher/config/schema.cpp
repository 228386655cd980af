#include "launcher/config/schema.h"

#include <algorithm>

#include "launcher/config/nearest.h"

namespace fathom::launcher {
namespace {

std::string last_part(std::string_view name) {
  return std::string(name.substr(name.rfind('.') + 1));
}

}  // namespace

const Key* find_key(std::string_view name) {
  const auto found = std::ranges::find(schema(), name, &Key::name);
  return found == schema().end() ? nullptr : &*found;
}

std::string section_of(std::string_view name) {
  return std::string(name.substr(0, name.find('.')));
}

std::vector<std::string> sections() {
  std::vector<std::string> names;
  for (const Key& key : schema()) names.push_back(section_of(key.name));
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> keys_below(std::string_view section) {
  const std::string prefix = std::string(section) + ".";
  std::vector<std::string> below;
  for (const Key& key : schema())
    if (key.name.starts_with(prefix)) below.push_back(key.name.substr(prefix.size()));
  return below;
}

std::string value_of(const Config& config, std::string_view name) {
  const Key* key = find_key(name);
  return key ? key->get(config).value_or("unset") : "unset";
}

std::optional<std::string> nearest_key(std::string_view name) {
  std::vector<std::string> all, same_section, parts;
  for (const Key& key : schema()) {
    if (last_part(key.name) == last_part(name)) return key.name;
    all.push_back(key.name);
    if (section_of(key.name) != section_of(name)) continue;
    same_section.push_back(key.name);
    parts.push_back(last_part(key.name));
  }
  if (same_section.empty()) return nearest(name, all);
  // The last part decides: `model.x` is not a misspelt `model.y` for the prefix they share.
  const auto part = nearest(last_part(name), parts);
  if (!part) return std::nullopt;
  return same_section[size_t(std::ranges::find(parts, *part) - parts.begin())];
}

}  // namespace fathom::launcher
