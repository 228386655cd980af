// What a run starts from: its own checkpoint, or another run's weights. Rank 0 reads and broadcasts.
#pragma once

#include <string>

#include "checkpoint/reader.h"
#include "core/model/transformer.h"
#include "core/optim/adam.h"
#include "dist/communicator.h"
#include "launcher/config/config.h"
#include "launcher/train/sharding.h"
#include "launcher/train/train_state.h"
#include "monitoring/log.h"

namespace fathom::launcher {

// Fills model, optimizer and `state` on every rank from rank 0's checkpoint, which is null on the
// others. Collective.
void load_state(const checkpoint::Checkpoint* source, model::Transformer& model, optim::Adam& adam,
                const Sharding& sharding, TrainState& state, dist::Communicator& group);

// The weights of another run's checkpoint, which rank 0 finds at `path`. Collective.
void load_weights(const std::string& path, const Config& config, model::Transformer& model,
                  dist::Communicator& group, const monitoring::Log& log);

// The weights alone, on this rank.
void load_weights(const checkpoint::Checkpoint& source, model::Transformer& model);

}  // namespace fathom::launcher
