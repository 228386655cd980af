// The words after `fathom`, turned into one call of a command.
#pragma once

namespace fathom::launcher {

// Runs the command. Returns its exit code; errors are thrown (core/base/error.h).
[[nodiscard]] int run_command_line(int argc, char** argv);

}  // namespace fathom::launcher
