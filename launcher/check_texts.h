// The texts that a config names, looked at as a run would: everything that is wrong with them at
// once, and how long an epoch is.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/data/prepare.h"
#include "launcher/config/config.h"
#include "launcher/problems.h"

namespace fathom::launcher {

struct CheckedTexts {
  std::map<std::string, data::SplitReport>
      splits;                      // "train", "valid", "test": those that are named
  std::filesystem::path prepared;  // the data set that was found; empty: it is still to be built
  int64_t pieces = 0;              // of the tokenizer that was found; 0: it is still to be learned
  int64_t steps_per_epoch = 0;     // where nothing is prepared an estimate; 0: unknown
  std::vector<std::string> warnings;
};

// Reads all of them. The pairs of a split are those that are used as far as the text shows; where
// the data set is there already they are counted exactly. DataError, IoError and InvalidArgument
// are noted with the words in which a run would end.
[[nodiscard]] CheckedTexts check_texts(const Config& config, Problems& problems);

}  // namespace fathom::launcher
