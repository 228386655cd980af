// Which word a misspelt one was meant to be.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::launcher {

// The closest candidate, if one is close enough to be meant.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 const std::vector<std::string>& candidates);

}  // namespace fathom::launcher
