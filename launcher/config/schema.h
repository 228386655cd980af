// The one table of every config key: name, type, range, meaning, and how its field is read and
// written. Loading, showing, `fathom config keys`, docs/configuration.md and error messages are all
// made from it, so they cannot disagree. A new key is one entry in schema_<sections>.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/config/config.h"
#include "launcher/config/yaml.h"

namespace fathom::launcher {

// A value that is part of the contract but that this program cannot do.
struct NotAvailable {
  std::string value;
  std::string reason;  // what it needs, and what is available
};

struct Key {
  std::string name;     // dotted: model.width
  std::string type;     // integer, number, boolean, text, choice, list
  std::string allowed;  // "integer in [1, 4096]", "one of relu, gelu"
  std::string meaning;
  std::vector<std::string> choices = {};  // of a choice
  std::vector<NotAvailable> not_available = {};

  // Writes the field. False: the value is not allowed, and the Config is as it was.
  std::function<bool(Config&, const YamlNode&)> set = {};
  // The value as YAML. None: the key has no place in this Config (an alternative spelling, or an
  // option of another topology).
  std::function<std::optional<std::string>(const Config&)> get = {};
};

// In the order in which `fathom config show` prints: sections, and keys in a section, stay
// together.
[[nodiscard]] const std::vector<Key>& schema();

// nullptr: no such key.
[[nodiscard]] const Key* find_key(std::string_view name);

// Keys below `section`, without its name and point; empty: `section` is none.
[[nodiscard]] std::vector<std::string> keys_below(std::string_view section);

// The value of a key in a Config; for messages. "unset" if it has no place there.
[[nodiscard]] std::string value_of(const Config& config, std::string_view name);

// The candidate closest to a misspelt word, if one is close enough to be meant.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 const std::vector<std::string>& candidates);

// The key meant by an unknown name: a near spelling, or the right name in the wrong section.
[[nodiscard]] std::optional<std::string> nearest_key(std::string_view name);

}  // namespace fathom::launcher
