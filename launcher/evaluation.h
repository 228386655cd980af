// The loss on a data set, shared out over the ranks: exact for any number of them, since
// micro-batches are fixed, rows do not depend on their neighbours, and sums are made in the order
// of the plan.
#pragma once

#include "core/data/dataset.h"
#include "core/model/transformer.h"
#include "dist/communicator.h"

namespace fathom::launcher {

struct Validation {
  double nll = 0;          // nats per target token, EOS included, unsmoothed
  double source_gain = 0;  // nll with the sources exchanged between sentences, minus nll; NaN in a
                           // decoder-only model and with a single sentence
  int64_t tokens = 0;
};

// Collective.
[[nodiscard]] Validation validate(model::Transformer& model, Device& device,
                                  const data::Dataset& data, int64_t micro_tokens,
                                  dist::Communicator& group);

}  // namespace fathom::launcher
