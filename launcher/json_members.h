// Members of a JSON object that may be damaged or of another version: what is not there, or is of
// another type, is empty or 0.
#pragma once

#include <cstdint>
#include <string>

namespace fathom::launcher {

[[nodiscard]] std::string text_member(const std::string& json, const std::string& key);
[[nodiscard]] int64_t integer_member(const std::string& json, const std::string& key);
[[nodiscard]] bool flag_member(const std::string& json, const std::string& key);

}  // namespace fathom::launcher
