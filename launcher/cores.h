// How many threads a rank gets.
#pragma once

#include "launcher/config/config.h"

namespace fathom::launcher {

// train.threads, or the cores this process may use, shared out over the ranks of its machine when
// the launcher did not bind them.
[[nodiscard]] int threads_per_rank(const Config& config);

// Is there a core that `threads` of every rank on this machine leave free?
[[nodiscard]] bool has_spare_core(int threads);

}  // namespace fathom::launcher
