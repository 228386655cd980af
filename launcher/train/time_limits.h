// How long ranks wait for each other.
#pragma once

#include "dist/communicator.h"
#include "dist/watchdog.h"
#include "launcher/config/config.h"

namespace fathom::launcher {

// Ends the process with exit code 7 when there is no progress within dist.timeout_seconds: a peer
// that hangs keeps every other rank in a collective indefinitely. A lone rank waits for nobody,
// however long its steps take.
[[nodiscard]] dist::Watchdog make_watchdog(const Config& config, dist::Communicator& group);

// Where one rank works alone, or all of them longer than a step: ten times dist.timeout_seconds,
// but not more than `most`.
[[nodiscard]] dist::Watchdog::Duration section_limit(const Config& config,
                                                     dist::Watchdog::Duration most);

// Of a validation or a save.
[[nodiscard]] dist::Watchdog::Duration section_limit(const Config& config);

}  // namespace fathom::launcher
