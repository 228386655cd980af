// Everything that decides how a run goes on: weights, moments, counters, data position, and the
// state of early stopping and verdict. Saved and loaded by the same lines, so the two cannot drift
// apart. What depends on timing (durations, restarts) is not state; it travels as provenance.
#pragma once

#include <cstdint>
#include <limits>
#include <list>
#include <vector>

#include "checkpoint/archive.h"
#include "core/model/transformer.h"
#include "core/optim/adam.h"
#include "core/score/verdict.h"

namespace fathom::launcher {

// What an archive sees of tensors: their bytes on the host. A SavingArchive looks at them until it
// is written, so they live as long as this does.
using HostCopies = std::list<std::vector<std::byte>>;

// Both of Adam's moments on the host, laid out as the flat buffers.
struct HostMoments {
  std::vector<std::byte> first, second;
};

struct TrainState {
  model::Transformer& model;
  optim::Adam& adam;

  int64_t step = 0;            // batches consumed, skipped updates included
  int64_t epoch = 0;           // of the next batch
  int64_t batch_in_epoch = 0;  // the next batch
  int64_t source_tokens = 0, target_tokens = 0, sentences = 0;  // trained on, EOS included
  int64_t skipped = 0;                                          // updates left out as not finite

  int64_t validations = 0, validations_without_gain = 0;
  double best_value =
      std::numeric_limits<double>::infinity();  // of train.best_metric, lower is better
  int64_t best_step = 0;
  score::VerdictState verdict = {};

  // The moments that are visited are the host's, so that they need not all be on this device: they
  // come and go by a Sharding. Saving: `copies` and `moments` outlive the archive.
  void visit(checkpoint::Archive& archive, HostCopies& copies, HostMoments& moments);
};

// The weights alone, as visit() names them.
void visit_weights(checkpoint::Archive& archive, model::Transformer& model, HostCopies& copies);

}  // namespace fathom::launcher
