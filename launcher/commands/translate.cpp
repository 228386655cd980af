#include "launcher/commands/translate.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <vector>

#include "core/decode/greedy.h"
#include "launcher/model_source.h"
#include "monitoring/log.h"
#include "monitoring/progress.h"

namespace fathom::launcher {
namespace {

std::vector<std::vector<int32_t>> read_sources(std::istream& in, const LoadedModel& model,
                                               const monitoring::Log& log) {
  const size_t longest = size_t(model.config.data.max_length);
  std::vector<std::vector<int32_t>> sources;
  for (std::string line; std::getline(in, line);) {
    sources.push_back(model.tokenizer->encode(line));
    if (sources.back().size() <= longest) continue;
    log.warn(join("line ", sources.size(), ": ", sources.back().size(), " tokens, cut to ", longest,
                  " (data.max_length)"));
    sources.back().resize(longest);
  }
  require<IoError>(!in.bad() && (&in != &std::cin || std::ferror(stdin) == 0),
                   "translate: standard input cannot be read; is it a directory?");
  return sources;
}

}  // namespace

int translate(const TranslateCommand& command, std::istream& in, std::ostream& out) {
  require(command.batch_tokens >= 1, "--batch-tokens: got ", command.batch_tokens,
          ", expected at least 1");
  LoadedModel loaded = load_model(command.model, command.threads);
  require(loaded.config.model.kind == core::ModelKind::kEncoderDecoder, command.model,
          ": a decoder-only model does not translate");
  const monitoring::Log log({.level = monitoring::LogLevel::kInfo});
  const std::vector<std::vector<int32_t>> sources = read_sources(in, loaded, log);

  // Like lengths together, so that a batch's sentences end at about the same time.
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sources[a].size() < sources[b].size(); });
  monitoring::Progress progress(std::cerr,
                                monitoring::stderr_progress("translate", int64_t(sources.size())));
  std::vector<std::string> translations(sources.size());
  for (size_t at = 0; at < order.size();) {
    std::vector<size_t> places;
    std::vector<std::vector<int32_t>> batch;
    for (int64_t tokens = 0; at < order.size(); ++at) {
      tokens += int64_t(sources[order[at]].size()) + 1;
      if (!batch.empty() && tokens > command.batch_tokens) break;
      places.push_back(order[at]);
      batch.push_back(sources[order[at]]);
    }
    const auto targets = core::greedy_decode(*loaded.model, *loaded.device, batch);
    for (size_t i = 0; i < places.size(); ++i)
      translations[places[i]] = loaded.tokenizer->decode(targets[i]);
    progress.update(int64_t(at), "sentences");
  }
  progress.finish();
  for (const std::string& line : translations) out << line << '\n';
  out.flush();
  require<IoError>(bool(out), "translate: standard output cannot be written");
  return 0;
}

}  // namespace fathom::launcher
