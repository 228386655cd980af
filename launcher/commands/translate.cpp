#include "launcher/commands/translate.h"

#include <iostream>
#include <vector>

#include <unistd.h>

#include "core/base/text.h"
#include "core/data/lines.h"
#include "core/decode/greedy.h"
#include "core/decode/translate.h"
#include "launcher/model_source.h"
#include "monitoring/log.h"
#include "monitoring/progress.h"

namespace fathom::launcher {
namespace {

// Most lines that are read, sorted by length and written together. It bounds the memory, and a
// reader of the output sees it grow; what a line becomes does not depend on it.
constexpr size_t kLinesAtOnce = 2000;

// Without waiting for it.
bool has_more(std::istream& in) { return in.rdbuf()->in_avail() > 0; }

// The next lines, none at the end. It waits for the first alone: who writes a line and waits for
// its translation gets it. `before` lines were read already.
std::vector<decode::Tokens> read_sources(std::istream& in, size_t before, const LoadedModel& model,
                                         const monitoring::Log& log) {
  const size_t longest = size_t(model.config.data.max_length);
  std::vector<decode::Tokens> sources;
  const auto reads_on = [&] {
    return sources.empty() || (sources.size() < kLinesAtOnce && has_more(in));
  };
  for (std::string line; reads_on() && std::getline(in, line);) {
    if (find_invalid_utf8(line) != line.npos)
      log.warn(join("line ", before + sources.size() + 1,
                    ": is not UTF-8; each byte that is not becomes U+FFFD"));
    sources.push_back(model.tokenizer->encode(data::repaired(line)));
    if (sources.back().size() <= longest) continue;
    log.warn(join("line ", before + sources.size(), ": ", sources.back().size(), " tokens, cut to ",
                  longest, " (data.max_length)"));
    sources.back().resize(longest);
  }
  require<IoError>(!in.bad(), "translate: standard input cannot be read; is it a directory?");
  return sources;
}

}  // namespace

CommandOptions add_translate(CommandOptions root, TranslateCommand& command) {
  CommandOptions own =
      root.subcommand("translate", "Translate standard input, line by line (greedy)");
  own.required("model", command.model, "A run directory or a checkpoint");
  own.option("--batch-tokens", command.batch_tokens, "Source tokens decoded at once");
  own.threads(command.threads);
  return own;
}

int translate(const TranslateCommand& command, std::istream& in, std::ostream& out) {
  require(command.batch_tokens >= 1, "--batch-tokens: got ", command.batch_tokens,
          ", expected at least 1");
  LoadedModel loaded = load_model(command.model, command.threads);
  require(loaded.config.model.kind == model::ModelKind::kEncoderDecoder, command.model,
          ": a decoder-only model does not translate");
  const monitoring::Log log({.level = monitoring::LogLevel::kInfo});
  if (&in == &std::cin) std::ios::sync_with_stdio(false);  // it then knows what waits to be read
  const bool is_typed = &in == &std::cin && isatty(STDIN_FILENO) != 0;
  monitoring::Progress progress(std::cerr, monitoring::stderr_progress("translate", 0));
  for (size_t done = 0;;) {
    const std::vector<decode::Tokens> sources = read_sources(in, done, loaded, log);
    if (sources.empty()) break;
    for (const decode::Tokens& target :
         decode::translate(*loaded.model, *loaded.device, decode::Greedy(), sources,
                           {.batch_tokens = command.batch_tokens}))
      out << loaded.tokenizer->decode(target) << '\n';
    out.flush();
    require<IoError>(bool(out), "translate: standard output cannot be written");
    done += sources.size();
    if (!is_typed) progress.update(int64_t(done), "sentences");
  }
  return 0;
}

}  // namespace fathom::launcher
