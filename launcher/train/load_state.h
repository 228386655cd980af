// What a run starts from: its own checkpoint, or another run's weights. Rank 0 reads and
// broadcasts.
#pragma once

#include "checkpoint/reader.h"
#include "core/model/transformer.h"
#include "core/optim/adam.h"
#include "dist/communicator.h"
#include "launcher/train/sharding.h"
#include "launcher/train/train_state.h"

namespace fathom::launcher {

// Fills model, optimizer and `state` on every rank from rank 0's checkpoint, which is null on the
// others. Collective.
void load_state(const checkpoint::Checkpoint* source, model::Transformer& model, optim::Adam& adam,
                const Sharding& sharding, TrainState& state, dist::Communicator& group);

// The weights alone, of rank 0's checkpoint, which is null on the others. Collective.
void load_weights(const checkpoint::Checkpoint* source, model::Transformer& model,
                  dist::Communicator& group);

// The weights alone, on this rank.
void load_weights(const checkpoint::Checkpoint& source, model::Transformer& model);

}  // namespace fathom::launcher
