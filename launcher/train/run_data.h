// The texts of a training run.
#pragma once

#include <string>
#include <vector>

#include "core/data/batch_sequence.h"
#include "core/data/prepare.h"
#include "dist/communicator.h"
#include "launcher/config/config.h"
#include "monitoring/log.h"

namespace fathom::launcher {

// Collective. Rank 0 prepares, then the others find it ready, or build their own where they do not
// see it.
[[nodiscard]] data::PreparedData prepare_data(const Config& config, dist::Communicator& group,
                                              const monitoring::Log& log);

// What validation translations are compared with, read once: the files may change while a run
// lives. None where train.best_metric is not bleu.
[[nodiscard]] std::vector<std::string> validation_references(const Config& config,
                                                             const monitoring::Log& log);

// Where the run goes on in the epoch: batches of another size are another number of them. `next` is
// the position by the config `before`.
[[nodiscard]] data::BatchPosition position_in(const Config& config, const Config& before,
                                              const data::PreparedData& data,
                                              const data::BatchPosition& next);

}  // namespace fathom::launcher
