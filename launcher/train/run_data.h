// The texts of a training run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/reader.h"
#include "core/data/batch_sequence.h"
#include "core/data/prepare.h"
#include "dist/communicator.h"
#include "launcher/config/config.h"
#include "monitoring/log.h"

namespace fathom::launcher {

// Collective. The bytes of the tokenizer that the run keeps or is given, the same on every rank;
// empty where one is learned from its text. `config` gets the place of a tokenizer that came with a
// checkpoint: RUN/tokenizer.model. `resumed` and `donor` are rank 0's, null on the others and where
// there is none; `before` is the config of the former. InvalidArgument when data.tokenizer_model is
// not the tokenizer of the donor's weights.
[[nodiscard]] std::string settle_tokenizer(Config& config, const std::optional<Config>& before,
                                           const checkpoint::Checkpoint* resumed,
                                           const checkpoint::Checkpoint* donor,
                                           dist::Communicator& group);

// Collective. Rank 0 reads the texts and prepares, then the others open what came of it, or build
// their own where they do not see it. DataError if a text that can be read only once, as a pipe, is
// needed for that, or again later. `tokenizer`: see above.
[[nodiscard]] data::PreparedData prepare_data(const Config& config, const std::string& tokenizer,
                                              dist::Communicator& group,
                                              const monitoring::Log& log);

// What validation translations are compared with, read once: the files may change while a run
// lives. None where train.best_metric is not bleu.
[[nodiscard]] std::vector<std::string> validation_references(const Config& config,
                                                             const monitoring::Log& log);

// Where the run goes on in the epoch: batches of another size are another number of them. `next` is
// the position by the config `before`.
[[nodiscard]] data::BatchPosition position_in(const Config& config, const Config& before,
                                              const data::PreparedData& data,
                                              const data::BatchPosition& next);

}  // namespace fathom::launcher
