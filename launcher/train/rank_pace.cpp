#include "launcher/train/rank_pace.h"

#include <algorithm>
#include <limits>

namespace fathom::launcher {

std::vector<RankPace> rank_paces(std::span<const RankWork> ranks) {
  const auto speed = [](const RankWork& w) { return w.seconds > 0 ? w.tokens / w.seconds : 0; };
  double first = std::numeric_limits<double>::infinity(), fastest = 0;
  for (const RankWork& work : ranks) {
    first = std::min(first, work.seconds);
    fastest = std::max(fastest, speed(work));
  }
  std::vector<RankPace> paces;
  for (const RankWork& work : ranks) {
    RankPace& pace = paces.emplace_back();
    pace.lag_seconds = work.seconds - first;
    if (work.tokens > 0) pace.relative_speed = speed(work) / fastest;
  }
  return paces;
}

}  // namespace fathom::launcher
