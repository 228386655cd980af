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
  std::string cause = {};                           // as in RunEnd
  std::optional<ValidationRecord> validation = {};  // the last one
  std::string verdict = {};  // on a run that went on in spite of it (verdict.action: report)
};

// "completed", "interrupted" or "failed", as result.json says it.
[[nodiscard]] const char* status_of(StopKind kind);
[[nodiscard]] int exit_code_of(StopKind kind);

// Nothing is left to train.
[[nodiscard]] bool is_complete(const Config& config, const TrainState& state);

// verdict.action: stop, or numbers that are not finite.
[[nodiscard]] bool ends_run(const Config& config, const score::Verdict& verdict);

// How a complete run, or one that the verdict has ended, stands. The reason of a failure says what
// can be done about it.
[[nodiscard]] TrainResult result_of(const Config& config, const TrainState& state,
                                    const score::Verdict& verdict);

// The monitor of a run that goes on from `state`, or starts there.
[[nodiscard]] score::VerdictMonitor make_verdict(const Config& config,
                                                 const data::PreparedData& data,
                                                 const score::VerdictState& state);

}  // namespace fathom::launcher
