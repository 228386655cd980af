// Sets pairs of a corpus aside for validation and test. Which ones follows from the number of pairs
// alone, so the same texts give the same files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/data/corpus.h"

namespace fathom::launcher {

struct HeldOut {
  data::Corpus train, valid, test;
  int64_t repeated = 0;  // pairs left out of training since they equal one that is held out
};

// `count` pairs each for validation and test, no two of them equal, in the order of the corpus.
// InvalidArgument when less than half of the pairs would be left to train on.
[[nodiscard]] HeldOut hold_out(const data::Corpus& corpus, int64_t count);

// DIRECTORY/{train,valid,test}.{SOURCE,TARGET}. InvalidArgument when one is there already.
void write_held_out(const HeldOut& texts, const std::filesystem::path& directory,
                    const std::string& source, const std::string& target);

}  // namespace fathom::launcher
