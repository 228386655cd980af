// Validation and translation of a data set, shared out over the ranks: exact for any number of
// them, since micro-batches are fixed, rows do not depend on their neighbours, and sums are made in
// the order of the plan.
#pragma once

#include <string>
#include <vector>

#include "core/data/config.h"
#include "core/data/dataset.h"
#include "core/data/tokenizer.h"
#include "core/decode/greedy.h"
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

// Translations of all sources of `data`, n in, n out, on every rank. Collective.
[[nodiscard]] std::vector<std::string> translate_dataset(model::Transformer& model, Device& device,
                                                         const data::Dataset& data,
                                                         const data::Tokenizer& tokenizer,
                                                         int64_t batch_tokens,
                                                         dist::Communicator& group);

// Corpus BLEU (sacreBLEU's defaults) and chrF of greedy translations against `references`, the raw
// lines of the split in order, at least as many as `data` has pairs. A line with an empty reference
// does not count; DataError when all are. Collective; every rank gets the figures.
struct SplitScore {
  double bleu = 0;
  double chrf = 0;  // chrF2
  std::string line, signature;
  int64_t uncounted = 0;                  // lines with an empty reference
  std::vector<std::string> translations;  // of all lines
};
[[nodiscard]] SplitScore score_split(model::Transformer& model, Device& device,
                                     const data::Dataset& data,
                                     const std::vector<std::string>& references,
                                     const data::Tokenizer& tokenizer, int64_t batch_tokens,
                                     dist::Communicator& group);

// The first `count` pairs of a set.
[[nodiscard]] data::Dataset first_pairs(const data::Dataset& data, int64_t count);

}  // namespace fathom::launcher
