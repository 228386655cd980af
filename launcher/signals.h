// Asking a run to stop: SIGUSR1, SIGTERM and SIGINT. While a run is being set up there is nothing
// to save, so they end the process at once with the exit code that says "run me again". From the
// first step on they only set a flag: the step loop looks at it between steps, all ranks agree, and
// one checkpoint is written. Further signals change nothing.
#pragma once

namespace fathom::launcher {

// A mapped file that was cut short raises SIGBUS wherever it is read. From here on that ends the
// process with a line that names the file, and exit code 3.
void report_lost_pages();

enum class Stopping { kAtOnce, kBetweenSteps };

// From here on the three signals stop the run in this way, and SIGPIPE is ignored.
void install_signal_handlers(Stopping how);

// The first signal that arrived under kBetweenSteps, 0 for none.
[[nodiscard]] int requested_stop();

}  // namespace fathom::launcher
