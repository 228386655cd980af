// The profiling pass of topologies that derive initial values from a measurement (Admin).
#pragma once

#include "core/data/dataset.h"
#include "core/model/transformer.h"
#include "dist/communicator.h"
#include "launcher/config/config.h"

namespace fathom::launcher {

// For a new run, before its first step: batch 0 of epoch 0, each rank with its own shards. The
// result is in the parameters, the same bits on every number of ranks. Does nothing for the other
// topologies. Collective. batch.shards is resolved.
void profile_model(const Config& config, const data::Dataset& data, model::Transformer& model,
                   dist::Communicator& group);

}  // namespace fathom::launcher
