#include "launcher/train/time_limits.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>

#include "core/base/error.h"

namespace fathom::launcher {
namespace {

using Duration = dist::Watchdog::Duration;

constexpr Duration kUnknown{300}, kLeast{60};
constexpr size_t kKnown = 20, kRemembered = 100;  // steps

}  // namespace

Duration first_limit(const Config& config) {
  return config.dist.timeout_seconds ? Duration(*config.dist.timeout_seconds) : kUnknown;
}

StepLimit::StepLimit(const Config& config)
    : is_auto_(!config.dist.timeout_seconds), value_(first_limit(config)) {}

void StepLimit::add(double step_seconds) {
  if (!is_auto_) return;
  if (last_.size() < kRemembered)
    last_.push_back(step_seconds);
  else
    last_[next_++ % kRemembered] = step_seconds;
  if (last_.size() < kKnown) return;
  std::vector<double> sorted = last_;
  const auto middle = sorted.begin() + std::ptrdiff_t(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  value_ = std::max(kLeast, 10 * Duration(*middle));
}

dist::Watchdog make_watchdog(const Config& config, dist::Communicator& group) {
  if (group.size() == 1)
    return dist::Watchdog(std::chrono::hours(1), [](const dist::Watchdog::Expiry&) {});
  return dist::Watchdog(first_limit(config), [&group](const dist::Watchdog::Expiry& e) {
    std::cerr << join("fathom: rank ", group.rank(), ": watchdog: no progress for ",
                      int64_t(e.seconds), " s in ", e.phase, " after step ", e.step,
                      "; a peer hangs or is gone. Look at its log and start "
                      "the run again (dist.timeout_seconds sets the "
                      "limit)\n")
              << std::flush;
    group.abort("watchdog", int(ExitCode::kPeer));
    std::_Exit(int(ExitCode::kPeer));
  });
}

dist::Watchdog::Duration section_limit(const Config& config, dist::Watchdog::Duration most) {
  const dist::Watchdog::Duration step = first_limit(config);
  return std::max(step, std::min(10 * step, most));
}

dist::Watchdog::Duration section_limit(const Config& config) {
  return section_limit(config, std::chrono::hours(1));
}

}  // namespace fathom::launcher
