// A config to begin with for a corpus of one's own: values that follow from its size, with the
// reason for each. The sizes are those of published set-ups, scaled down where there is less text.
#pragma once

#include <cstdint>
#include <string>

#include "core/data/corpus.h"

namespace fathom::launcher {

// What values follow from.
struct CorpusSize {
  int64_t pairs = 0;
  int64_t characters = 0;  // that differ, both sides together
  int64_t words = 0;       // that differ, both sides together
  // Letters, and the space before a word, of the longer side of all pairs.
  double letters = 0;
  int64_t bad_lines = 0;  // pairs that data.on_bad_line: fail would refuse
};
[[nodiscard]] CorpusSize size_of(const data::Corpus& corpus);

// Entries of the tokenizer: what fits the number of pairs, but twice the characters, which each
// take one, and not more than so many words can fill.
[[nodiscard]] int64_t suggested_vocabulary(const CorpusSize& size);

struct Suggestion {
  std::string command;             // that makes it, for its first line
  std::string name;                // of the run
  std::string train, valid, test;  // prefixes; valid and test may be empty
  std::string source, target;
  CorpusSize size;
};
// YAML with comments, no line over 100 columns unless a path is long.
[[nodiscard]] std::string suggested_config(const Suggestion& given);

}  // namespace fathom::launcher
