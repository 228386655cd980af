// Before the first step: what must be the same on all ranks, and what a resume must find as it was.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/reader.h"
#include "core/data/prepare.h"
#include "dist/communicator.h"
#include "launcher/config/config.h"
#include "launcher/provenance.h"
#include "monitoring/log.h"

namespace fathom::launcher {

// All ranks must have the same config, program, numerics and data.
void check_ranks_agree(const Config& config, const data::PreparedData& data,
                       const std::string& numerics, dist::Communicator& group);

// A resumed run needs the training text that it was started with, by its tokens, wherever the files
// lie; and the validation text, unless `allowed` has data.valid. Returns whether that has changed.
// DataError when a text has changed that may not.
[[nodiscard]] bool check_same_data(const checkpoint::Checkpoint& checkpoint,
                                   const data::PreparedData& data,
                                   const std::vector<std::string>& allowed);

// A run resumed under other kernels rounds differently: allowed, with a warning. `now` is the
// device's numerics.
void check_same_numerics(const checkpoint::Checkpoint& checkpoint, const std::string& now,
                         const monitoring::Log& log);

}  // namespace fathom::launcher
