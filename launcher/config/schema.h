// The one table of every config key. Loading, showing, `fathom config keys`, docs/configuration.md,
// error messages and the rules of a resume are all made from it, so they cannot disagree. A new key
// is a field with its default and one row in keys.cpp.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/config/config.h"
#include "launcher/config/value.h"

namespace fathom::launcher {

// May a key change when a run is resumed?
enum class MayChange {
  kFreely,
  kOnRequest,  // it changes what is learned: only where --allow-change names it
  kNever,      // the shape of the model, the training text
};

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
  MayChange may_change;
  std::vector<std::string> choices = {};  // of a choice
  std::vector<NotAvailable> not_available = {};
  // By words that are not spelt like the value they mean: gpu for cuda.
  std::map<std::string, std::string, std::less<>> meant = {};
  bool is_required = false;  // by a training run: its default is none

  // Writes the field. False: the value is not allowed, and the Config is as it was.
  std::function<bool(Config&, const YamlNode&)> set = {};
  // The value as YAML. None: the key has no place in this Config (an alternative spelling, or an
  // option of another topology).
  std::function<std::optional<std::string>(const Config&)> get = {};
};

// In the order in which `fathom config show` prints: sections, and keys in a section, stay
// together.
[[nodiscard]] const std::vector<Key>& schema();

// One key for every name of a topology option, made from what the topologies declare.
[[nodiscard]] std::vector<Key> topology_option_keys();

// nullptr: no such key.
[[nodiscard]] const Key* find_key(std::string_view name);

// "model" of "model.width".
[[nodiscard]] std::string section_of(std::string_view name);
[[nodiscard]] std::vector<std::string> sections();

// Keys below `section`, without its name and point; empty: `section` is none.
[[nodiscard]] std::vector<std::string> keys_below(std::string_view section);

// The value of a key in a Config; for messages. "unset" if it has no place there.
[[nodiscard]] std::string value_of(const Config& config, std::string_view name);

// The key meant by an unknown name: a near spelling, or the right name in the wrong section.
[[nodiscard]] std::optional<std::string> nearest_key(std::string_view name);

}  // namespace fathom::launcher
