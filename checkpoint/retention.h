// Which checkpoints of a run are kept.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "checkpoint/manifest.h"

namespace fathom::checkpoint {

// A checkpoint is kept if any of the three rules keeps it.
struct Retention {
  int64_t keep_last = 3;   // the newest so many
  int64_t keep_best = 1;   // the best so many by the metric of the newest one that has any
  int64_t keep_every = 0;  // steps divisible by this; 0: off
};

// Best first; among equals the newer first. Those without the metric are left out. `manifests` are
// newest first and must outlive the result.
[[nodiscard]] std::vector<const Manifest*> rank_by_metric(std::span<const Manifest> manifests);

// The steps to keep. `manifests` are newest first.
[[nodiscard]] std::set<int64_t> steps_to_keep(std::span<const Manifest> manifests,
                                              const Retention& retention);

}  // namespace fathom::checkpoint
