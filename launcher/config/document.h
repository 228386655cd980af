// The table of keys for people and scripts: blocks for a terminal, JSON, or docs/configuration.md.
#pragma once

#include <string>
#include <vector>

#include "launcher/config/schema.h"

namespace fathom::launcher {

// Those whose name contains `pattern` or, where it has a * or ?, is matched by it; empty: all.
// InvalidArgument, with the nearest name, when there are none.
[[nodiscard]] std::vector<const Key*> keys_like(const std::string& pattern);

// A block for each: name and default; type and range, and whether it may change on a resume; the
// meaning. No line has more than 100 columns.
[[nodiscard]] std::string keys_as_text(const std::vector<const Key*>& keys);

// A JSON array, a key a line: name, type, default (as YAML; left out where there is none),
// required, allowed, choices, not_available, resume, meaning.
[[nodiscard]] std::string keys_as_json(const std::vector<const Key*>& keys);

// The whole page docs/configuration.md.
[[nodiscard]] std::string keys_as_markdown();

}  // namespace fathom::launcher
