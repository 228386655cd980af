// When a run is over, and how.
#pragma once

#include <optional>
#include <string>

#include "core/data/prepare.h"
#include "launcher/config/config.h"
#include "launcher/train/train_state.h"
#include "launcher/train/validator.h"

namespace fathom::launcher {

enum class StopKind { kCompleted, kSignalled, kFailed };

struct TrainResult {
  StopKind kind = StopKind::kCompleted;
  std::string reason = {};                          // why it ended, one sentence
  std::optional<ValidationRecord> validation = {};  // the last one
};

// "completed", "interrupted" or "failed", as result.json says it.
[[nodiscard]] const char* status_of(StopKind kind);
[[nodiscard]] int exit_code_of(StopKind kind);

// Nothing is left to train.
[[nodiscard]] bool is_complete(const Config& config, const TrainState& state);

// How a complete run, or one that the verdict has ended, stands.
[[nodiscard]] TrainResult result_of(const Config& config, const TrainState& state,
                                    const score::Verdict& verdict);

// The monitor of a run that goes on from `state`, or starts there.
[[nodiscard]] score::VerdictMonitor make_verdict(const Config& config,
                                                 const data::PreparedData& data,
                                                 const score::VerdictState& state);

}  // namespace fathom::launcher
