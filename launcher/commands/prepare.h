// `fathom prepare CONFIG`: learns the tokenizer and builds the binary data set, or finds both done.
#pragma once

#include "core/data/config.h"

namespace fathom::launcher {

// Prints what was learnt, counted and dropped, and where it lies, to stdout; phases and notes go to
// stderr. Returns the exit code; errors are thrown.
[[nodiscard]] int prepare(const data::DataConfig& config, bool decoder_only);

}  // namespace fathom::launcher
