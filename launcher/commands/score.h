// `fathom score`: BLEU, chrF2 and chrF2++ of a file of translations, as sacreBLEU 2.6.0 defines
// them. One scorer serves this command, validation and the end of a run.
#pragma once

#include <string>
#include <vector>

#include "launcher/command_options.h"

namespace fathom::launcher {

struct ScoreCommand {
  std::string hypothesis;               // a path, or "-" for standard input
  std::vector<std::string> references;  // one or more paths; at most one input is "-"
  bool lowercase = false;
  std::string tokenizer = "13a";  // 13a, intl, char, none
  std::string smoothing = "exp";  // exp, floor, add-k, none
};

// Declares `score` and its options; a parse fills `command`.
[[nodiscard]] CommandOptions add_score(CommandOptions root, ScoreCommand& command);

// Prints one JSON object to standard output and returns 0. Lines end at LF only. Throws IoError for
// a file that cannot be read, DataError for line counts that differ or text that is not UTF-8,
// InvalidArgument for a wrong name or two inputs from standard input.
int score(const ScoreCommand& command);

}  // namespace fathom::launcher
