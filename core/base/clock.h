// Clocks, and durations as text.
#pragma once

#include <string>

namespace fathom {

// Since an arbitrary moment. Never goes back; for durations and time limits.
[[nodiscard]] double monotonic_seconds();

// Unix time. May jump; for what people and other machines read.
[[nodiscard]] double wall_seconds();

// "20261201T144500Z": for names of what is made now.
[[nodiscard]] std::string utc_stamp();

// "12 s", "5 min", "3 h 12 min", rounded down; a negative time counts as 0.
[[nodiscard]] std::string duration_text(double seconds);

// For a narrow line, to the nearest second: "59s", "1m00s", "3h12m", "2d04h"; "?" for NaN, a
// negative time or over 30 years.
[[nodiscard]] std::string short_duration_text(double seconds);

}  // namespace fathom
