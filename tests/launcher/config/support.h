// Shared by the config tests: what a refused config says.
#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"
#include "launcher/config/load.h"

namespace fathom::launcher {

inline Config parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_config(text, "c.yaml", "c", overrides);
}

// The message of InvalidArgument; "accepted" if there was none. Any other exception passes through
// and fails the test.
inline std::string refusal(const std::string& text,
                           const std::vector<std::string>& overrides = {}) {
  try {
    const Config config = parse(text, overrides);
    return "accepted: run " + config.run.name;
  } catch (const InvalidArgument& e) {
    return e.what();
  }
}

}  // namespace fathom::launcher
