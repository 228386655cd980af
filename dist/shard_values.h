// Brings a few numbers per virtual shard (loss sums, statistics) to every rank in shard order, so
// that sums over them do not depend on the number of ranks.
#pragma once

#include <span>
#include <vector>

#include "dist/communicator.h"

namespace fathom::dist {

// `values` holds k numbers per shard that this rank owns (reduction_tree.h), k equal on all ranks.
// Returns (shards * k), shard 0 first. Collective. InvalidArgument if `values` does not divide.
[[nodiscard]] std::vector<double> gather_in_shard_order(Communicator& group, int shards,
                                                        std::span<const double> values);

}  // namespace fathom::dist
