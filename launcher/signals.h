// Asking a run to stop: SIGUSR1, SIGTERM and SIGINT set a flag, nothing more. The step loop looks
// at it between steps, all ranks agree, and one checkpoint is written. Further signals change
// nothing.
#pragma once

namespace fathom::launcher {

// From here on the three signals ask for a stop, and SIGPIPE is ignored.
void install_signal_handlers();

// The first signal that arrived, 0 for none.
[[nodiscard]] int requested_stop();

}  // namespace fathom::launcher
