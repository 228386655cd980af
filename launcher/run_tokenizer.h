// A run's tokenizer is part of it: RUN/tokenizer.model, whose hash is in every checkpoint.
#pragma once

#include <string>

#include "checkpoint/reader.h"

namespace fathom::launcher {

// The bytes of the model that `source` was trained with, from the run directory in which it lies.
// DataError when it is missing or another one.
[[nodiscard]] std::string tokenizer_of(const checkpoint::Checkpoint& source);

}  // namespace fathom::launcher
