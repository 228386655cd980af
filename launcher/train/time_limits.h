// How long ranks wait for each other.
#pragma once

#include <vector>

#include "dist/communicator.h"
#include "dist/watchdog.h"
#include "launcher/config/config.h"

namespace fathom::launcher {

// dist.timeout_seconds, of auto what it begins with.
[[nodiscard]] dist::Watchdog::Duration first_limit(const Config& config);

// The limit of a step by dist.timeout_seconds: auto: that of a step that is much slower than those
// before it, however fast they are.
class StepLimit {
 public:
  explicit StepLimit(const Config& config);
  void add(double step_seconds);
  [[nodiscard]] dist::Watchdog::Duration value() const { return value_; }

 private:
  bool is_auto_;
  dist::Watchdog::Duration value_;
  std::vector<double> last_;  // seconds, in a ring
  size_t next_ = 0;
};

// Ends the process with exit code 7 when there is no progress within first_limit(config): a peer
// that hangs keeps every other rank in a collective indefinitely. A lone rank waits for nobody,
// however long its steps take.
[[nodiscard]] dist::Watchdog make_watchdog(const Config& config, dist::Communicator& group);

// Where one rank works alone, or all of them longer than a step: ten times first_limit(config), but
// not more than `most`.
[[nodiscard]] dist::Watchdog::Duration section_limit(const Config& config,
                                                     dist::Watchdog::Duration most);

// Of a validation or a save.
[[nodiscard]] dist::Watchdog::Duration section_limit(const Config& config);

}  // namespace fathom::launcher
