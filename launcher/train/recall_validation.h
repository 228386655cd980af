// A validation that an earlier attempt made after its last checkpoint.
#pragma once

#include <optional>

#include "checkpoint/reader.h"
#include "core/data/prepare.h"
#include "dist/communicator.h"
#include "launcher/config/config.h"
#include "launcher/train/run_records.h"
#include "launcher/train/train_state.h"
#include "monitoring/log.h"

namespace fathom::launcher {

// Collective. What lies beside the checkpoint that the run goes on from, which is rank 0's and null
// on the others; the same on every rank. None where no validation is due at `state`, where it was
// not made, or was of another text or without the scores that train.best_metric now asks for.
[[nodiscard]] std::optional<ValidationRecord> recall_validation(
    const checkpoint::Checkpoint* source, const Config& config, const data::PreparedData& data,
    const TrainState& state, dist::Communicator& group, const monitoring::Log& log);

}  // namespace fathom::launcher
