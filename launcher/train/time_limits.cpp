#include "launcher/train/time_limits.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>

#include "core/base/error.h"

namespace fathom::launcher {

dist::Watchdog make_watchdog(const Config& config, dist::Communicator& group) {
  if (group.size() == 1)
    return dist::Watchdog(std::chrono::hours(1), [](const dist::Watchdog::Expiry&) {});
  return dist::Watchdog(dist::Watchdog::Duration(config.dist.timeout_seconds),
                        [&group](const dist::Watchdog::Expiry& e) {
                          std::cerr
                              << join("fathom: rank ", group.rank(), ": watchdog: no progress for ",
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
  const dist::Watchdog::Duration step(config.dist.timeout_seconds);
  return std::max(step, std::min(10 * step, most));
}

dist::Watchdog::Duration section_limit(const Config& config) {
  return section_limit(config, std::chrono::hours(1));
}

}  // namespace fathom::launcher
