#include "launcher/commands/translate.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <vector>

#include <unistd.h>

#include "core/base/text.h"
#include "core/data/lines.h"
#include "core/decode/greedy.h"
#include "launcher/model_source.h"
#include "monitoring/log.h"
#include "monitoring/progress.h"

namespace fathom::launcher {
namespace {

// Lines that are read, sorted by length and written together. It bounds the memory, and a reader of
// the output sees it grow; what a line becomes does not depend on it.
constexpr size_t kLinesAtOnce = 2000;

using Sentences = std::vector<std::vector<int32_t>>;

// The next lines, at most `most`; fewer only at the end. `before` lines were read already.
Sentences read_sources(std::istream& in, size_t most, size_t before, const LoadedModel& model,
                       const monitoring::Log& log) {
  const size_t longest = size_t(model.config.data.max_length);
  Sentences sources;
  for (std::string line; sources.size() < most && std::getline(in, line);) {
    if (find_invalid_utf8(line) != line.npos)
      log.warn(join("line ", before + sources.size() + 1,
                    ": is not UTF-8; each byte that is not becomes U+FFFD"));
    sources.push_back(model.tokenizer->encode(data::mended(line)));
    if (sources.back().size() <= longest) continue;
    log.warn(join("line ", before + sources.size(), ": ", sources.back().size(), " tokens, cut to ",
                  longest, " (data.max_length)"));
    sources.back().resize(longest);
  }
  require<IoError>(!in.bad() && (&in != &std::cin || std::ferror(stdin) == 0),
                   "translate: standard input cannot be read; is it a directory?");
  return sources;
}

// Like lengths together, so that a batch's sentences end at about the same time.
std::vector<std::string> translate_all(const Sentences& sources, int64_t batch_tokens,
                                       LoadedModel& model) {
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sources[a].size() < sources[b].size(); });
  std::vector<std::string> translations(sources.size());
  for (size_t at = 0; at < order.size();) {
    std::vector<size_t> places;
    Sentences batch;
    for (int64_t tokens = 0; at < order.size(); ++at) {
      tokens += int64_t(sources[order[at]].size()) + 1;
      if (!batch.empty() && tokens > batch_tokens) break;
      places.push_back(order[at]);
      batch.push_back(sources[order[at]]);
    }
    const auto targets = decode::greedy_decode(*model.model, *model.device, batch);
    for (size_t i = 0; i < places.size(); ++i)
      translations[places[i]] = model.tokenizer->decode(targets[i]);
  }
  return translations;
}

}  // namespace

int translate(const TranslateCommand& command, std::istream& in, std::ostream& out) {
  require(command.batch_tokens >= 1, "--batch-tokens: got ", command.batch_tokens,
          ", expected at least 1");
  LoadedModel loaded = load_model(command.model, command.threads);
  require(loaded.config.model.kind == model::ModelKind::kEncoderDecoder, command.model,
          ": a decoder-only model does not translate");
  const monitoring::Log log({.level = monitoring::LogLevel::kInfo});
  // Who types wants an answer to each line.
  const bool is_typed = &in == &std::cin && isatty(STDIN_FILENO) != 0;
  const size_t at_once = is_typed ? 1 : kLinesAtOnce;
  monitoring::Progress progress(std::cerr, monitoring::stderr_progress("translate", 0));
  for (size_t done = 0;;) {
    const Sentences sources = read_sources(in, at_once, done, loaded, log);
    for (const std::string& line : translate_all(sources, command.batch_tokens, loaded))
      out << line << '\n';
    out.flush();
    require<IoError>(bool(out), "translate: standard output cannot be written");
    done += sources.size();
    if (sources.size() < at_once) break;
    if (!is_typed) progress.update(int64_t(done), "sentences");
  }
  return 0;
}

}  // namespace fathom::launcher
