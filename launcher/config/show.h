// A resolved config as text, and what differs between two. Equal configs give equal bytes.
#pragma once

#include <string>
#include <vector>

#include "launcher/config/config.h"

namespace fathom::launcher {

// Every key in the order of the table. Loading it gives an equal Config.
[[nodiscard]] std::string to_yaml(const Config& config);

// The same for people: a value that is not the key's default has that behind it, "# default 0.1".
[[nodiscard]] std::string to_marked_yaml(const Config& config);

// 16 hexadecimal digits; ranks compare it at start.
[[nodiscard]] std::string config_hash(const Config& config);

struct Difference {
  std::string key;
  std::string old_value;  // as YAML; "unset" where the key has no place in that config
  std::string new_value;
};
// In the order of the table.
[[nodiscard]] std::vector<Difference> differences(const Config& old_config,
                                                  const Config& new_config);

}  // namespace fathom::launcher
