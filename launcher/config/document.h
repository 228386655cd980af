// The table of keys for people: columns for a terminal, or docs/configuration.md.
#pragma once

#include <string>

namespace fathom::launcher {

// key, type, default, allowed, meaning; one line each.
[[nodiscard]] std::string keys_as_text();

// The whole page docs/configuration.md.
[[nodiscard]] std::string keys_as_markdown();

}  // namespace fathom::launcher
