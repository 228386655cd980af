// Asking a run to stop: SIGUSR1, SIGTERM, SIGINT, SIGHUP and SIGXCPU. While a run is being set up
// there is nothing to save, so they end the process at once with the exit code that says "run me
// again". From the first step on they only set a flag: the step loop looks at it after each step
// and before each batch of a validation, all ranks agree, and one checkpoint is written. Further
// signals change nothing. SIGUSR2 asks for a checkpoint; the run goes on.
#pragma once

namespace fathom::launcher {

// A mapped file that was cut short raises SIGBUS wherever it is read. From here on that ends the
// process with a line that names the file, and exit code 3.
void report_lost_pages();

enum class Stopping { kAtOnce, kBetweenSteps };

// From here on the signals stop the run in this way, and SIGPIPE is ignored. SIGHUP stays ignored
// where it was when the process began, as under nohup. kAtOnce: one that arrived before, under
// kBetweenSteps, ends the process now.
void install_signal_handlers(Stopping how);

// The first signal that arrived under kBetweenSteps, 0 for none.
[[nodiscard]] int requested_stop();

// Whether SIGUSR2 has arrived since the last call.
[[nodiscard]] bool take_requested_save();

}  // namespace fathom::launcher
