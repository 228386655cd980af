// `fathom evaluate RUN_OR_CHECKPOINT`: loss, perplexity, source gain, BLEU and chrF of a split of
// the run's config, or of any two files, as JSON.
#pragma once

#include <ostream>
#include <string>

#include "dist/session.h"
#include "launcher/command_options.h"

namespace fathom::launcher {

struct EvaluateCommand {
  std::string model;
  std::string split = "test";     // valid or test
  std::string source, reference;  // files, instead of a split
  int64_t sentences = 0;          // only the first so many; 0: all
  int64_t samples = 0;            // translations to print with their source and reference
  int threads = 0;
};

// Declares `evaluate` and its options; a parse fills `command`.
[[nodiscard]] CommandOptions add_evaluate(CommandOptions root, EvaluateCommand& command);

// Works on any number of ranks, with the same figures.
[[nodiscard]] int evaluate(const EvaluateCommand& command, dist::Session& session,
                           std::ostream& out);

}  // namespace fathom::launcher
