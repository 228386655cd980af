#include "core/base/clock.h"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace fathom {
namespace {

template <class Clock>
double seconds_of() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

}  // namespace

double monotonic_seconds() { return seconds_of<std::chrono::steady_clock>(); }
double wall_seconds() { return seconds_of<std::chrono::system_clock>(); }

std::string utc_stamp() {
  return fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::time_t(wall_seconds())));
}

std::string duration_text(double seconds) {
  const int64_t s = seconds > 0 ? int64_t(seconds) : 0;
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min", s / 60);
  return fmt::format("{} h {} min", s / 3600, s / 60 % 60);
}

std::string short_duration_text(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) return "?";
  const int64_t s = std::llround(seconds);
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  return fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24);
}

}  // namespace fathom
