// How many threads a rank gets.
#pragma once

#include <optional>
#include <vector>

#include "dist/communicator.h"
#include "launcher/config/config.h"

namespace fathom::launcher {

// Of rank `rank` of a machine whose ranks may run on the cores `masks`: a core that several of them
// may use counts for each in part. `quota`, in CPUs, is shared out over all of them. At least 1.
[[nodiscard]] int share_of_cores(const std::vector<std::vector<int>>& masks, int rank,
                                 std::optional<double> quota);

// Collective. The share of this rank; `node`: the ranks of this machine.
[[nodiscard]] int cores_of_rank(dist::Communicator& node);

// train.threads, or one for each of the rank's cores; the reference device has one.
[[nodiscard]] int threads_per_rank(const Config& config, int cores);

}  // namespace fathom::launcher
