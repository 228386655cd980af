// What all ranks agree on after a step: a signal on any rank stops all of them after the same one.
#pragma once

#include "dist/communicator.h"

namespace fathom::launcher {

enum class CommitOutcome : int64_t { kNone = 0, kSaved = 1, kFailed = 2 };

struct StepAgreement {
  bool stops = false;                           // a signal asked for it
  bool saves = false;                           // by rank 0's clock
  CommitOutcome commit = CommitOutcome::kNone;  // of the save that was under way on rank 0
};

// `mine` is what this rank has seen; what any has seen holds for all. Collective.
[[nodiscard]] StepAgreement agree(dist::Communicator& group, const StepAgreement& mine);

}  // namespace fathom::launcher
