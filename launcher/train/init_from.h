// `--init-from`: the weights of another run begin a new one. They keep their meaning only with the
// tokenizer and the kind of model that they were trained with.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/reader.h"
#include "launcher/config/config.h"

namespace fathom::launcher {

// On rank 0, of a run that begins. Nothing where `path` is empty. InvalidArgument, naming key and
// both values, where the weights would mean something else in a model of `config`: heads, activation,
// topology and its options, languages exchanged. CheckpointError when there is no checkpoint.
[[nodiscard]] std::optional<checkpoint::Checkpoint> open_donor(const std::string& path,
                                                               const Config& config);

}  // namespace fathom::launcher
