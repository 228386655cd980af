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

// A resumed run needs the tokens it was started with: those of every text, or of the training text
// alone where `changes` has data.valid or data.test. DataError when they have changed since.
void check_same_data(const checkpoint::Checkpoint& checkpoint, const data::PreparedData& data,
                     const std::vector<ConfigChange>& changes);

// A run resumed under other kernels rounds differently: allowed, with a warning. `now` is the
// device's numerics.
void check_same_numerics(const checkpoint::Checkpoint& checkpoint, const std::string& now,
                         const monitoring::Log& log);

}  // namespace fathom::launcher
