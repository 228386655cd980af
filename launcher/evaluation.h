// The loss on a data set, shared out over the ranks: exact for any number of them, since
// micro-batches are fixed, rows do not depend on their neighbours, and sums are made in the order
// of the plan.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/data/dataset.h"
#include "core/model/transformer.h"
#include "dist/communicator.h"

namespace fathom::launcher {

struct Validation {
  double nll = 0;  // nats per target token, EOS included, unsmoothed
  // The loss with the sources exchanged between sentences minus the loss without, over the pairs of
  // SourceExchange. NaN in a decoder-only model, and where that exchange is too small to tell.
  double source_gain = 0;
  int64_t tokens = 0;
};

// Each sentence gets the source of the next one in the plan, which is of like length; the last one
// gets that of the first. Pairs whose own source is the same are left out, as exchanging them
// changes nothing.
struct SourceExchange {
  // By batch of the plan; `sources` are those of the pairs whose source each gets.
  std::vector<std::vector<int64_t>> pairs, sources;
  // False with fewer than two pairs, or with less than a tenth of all.
  bool is_telling = false;
};
[[nodiscard]] SourceExchange exchange_sources(const data::Dataset& data,
                                              const std::vector<std::vector<int64_t>>& plan);

// Collective. A pair longer than `micro_tokens` is a micro-batch of its own. `before_batch` is
// called before every batch, as often on all ranks; what it throws ends the work.
[[nodiscard]] Validation validate(model::Transformer& model, Device& device,
                                  const data::Dataset& data, int64_t micro_tokens,
                                  dist::Communicator& group,
                                  const std::function<void()>& before_batch = {});

}  // namespace fathom::launcher
