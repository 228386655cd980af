// BLEU and chrF of a model's translations of a split, the work shared out over the ranks. The
// figures are the same on any number of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/tokenizer.h"
#include "core/model/transformer.h"
#include "dist/communicator.h"

namespace fathom::launcher {

// Corpus BLEU (sacreBLEU's defaults) and chrF of greedy translations against `references`, the raw
// lines of the split in order, at least as many as `data` has pairs. An empty one is a reference of
// no words, as in sacreBLEU. Collective; every rank gets the figures. `before_batch`: as in
// validate().
struct SplitScore {
  double bleu = 0;
  double chrf = 0, chrf_plus_plus = 0;  // chrF2, chrF2++
  std::string line, signature;
  std::vector<std::string> translations;  // of all lines
};
[[nodiscard]] SplitScore score_split(model::Transformer& model, Device& device,
                                     const data::Dataset& data,
                                     const std::vector<std::string>& references,
                                     const data::Tokenizer& tokenizer, int64_t batch_tokens,
                                     dist::Communicator& group,
                                     const std::function<void()>& before_batch = {});

}  // namespace fathom::launcher
