#include "launcher/train/stop_agreement.h"

#include <array>
#include <span>

namespace fathom::launcher {

StepAgreement agree(dist::Communicator& group, const StepAgreement& mine) {
  std::array<int64_t, 3> most = {mine.stops, mine.saves, int64_t(mine.commit)};
  group.all_reduce_max(std::span<int64_t>(most));
  return {.stops = most[0] != 0, .saves = most[1] != 0, .commit = CommitOutcome(most[2])};
}

}  // namespace fathom::launcher
