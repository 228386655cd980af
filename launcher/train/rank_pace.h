// How the ranks of a step compare.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "launcher/train/gradient_step.h"

namespace fathom::launcher {

struct RankPace {
  double lag_seconds = 0;                // after the first rank
  std::optional<double> relative_speed;  // to the fastest; of a rank without tokens none is known
};

[[nodiscard]] std::vector<RankPace> rank_paces(std::span<const RankWork> ranks);

}  // namespace fathom::launcher
