// Everything that decides how a run goes on: weights, moments, counters, data position, and the
// state of early stopping and verdict. Saved and loaded by the same lines, so the two cannot drift
// apart. What depends on timing (durations, restarts) is not state; it travels as provenance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "checkpoint/archive.h"
#include "core/autograd/parameter.h"
#include "core/data/batch_sequence.h"
#include "core/score/verdict.h"

namespace fathom::launcher {

struct TrainState {
  int64_t step = 0;          // batches consumed, skipped updates included
  data::BatchPosition next;  // batch
  int64_t source_tokens = 0, target_tokens = 0, sentences = 0;  // trained on, EOS included
  int64_t skipped = 0;                                          // updates left out as not finite

  // The step whose scheduled validation is not counted yet, 0 for none. A checkpoint is always of
  // the state before that of its step; what was found lies beside it in validation.json.
  int64_t validation_due = 0;
  int64_t validations = 0, validations_without_gain = 0;
  // Of train.best_metric, with the sign that makes lower better.
  double best_value = std::numeric_limits<double>::infinity();
  int64_t best_step = 0;
  score::VerdictState verdict = {};

  void visit(checkpoint::Archive& archive);
  // From here on validations are measured otherwise: none before counts as better or worse.
  void forget_best();
};

// The parameters on the host, each under its own name and shape. The bytes are laid out as the
// store's flat buffers, store.size() elements of its wide type; an archive that saves looks at them
// until it is written.
void visit_weights(checkpoint::Archive& archive, const ParameterStore& store,
                   std::span<std::byte> weights);
void visit_moments(checkpoint::Archive& archive, const ParameterStore& store,
                   std::span<std::byte> first, std::span<std::byte> second, int64_t& updates);

}  // namespace fathom::launcher
