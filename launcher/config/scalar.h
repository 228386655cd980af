// Numbers as text and back, the same in every locale: std::from_chars and std::to_chars only.
// Nothing throws; no value means "not of this type".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fathom::launcher {

// Decimal digits with a sign; no leading zero (YAML 1.1 reads it as octal), no fraction. An integer
// that 64 bits cannot hold has no value.
[[nodiscard]] std::optional<int64_t> parse_integer(std::string_view text);

// A finite decimal number; `nan`, `inf`, `1e400`, hexadecimal and trailing text have no value.
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

// `true` or `false`, as YAML 1.2 has them; `yes` and `on` are text.
[[nodiscard]] std::optional<bool> parse_boolean(std::string_view text);

// The shortest text that reads back to the same number, with a point where YAML 1.1 readers need
// one: 0.0005, 256, 1.0e-07.
[[nodiscard]] std::string format_number(double value);

}  // namespace fathom::launcher
