#include "launcher/commands/evaluate.h"

#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/data/corpus.h"
#include "core/data/prepare.h"
#include "launcher/cores.h"
#include "launcher/evaluation.h"
#include "launcher/model_source.h"
#include "launcher/translation_score.h"

namespace fathom::launcher {
namespace {

using nlohmann::ordered_json;

ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

data::Dataset first_pairs(const data::Dataset& data, int64_t count) {
  std::vector<data::TokenPair> pairs;
  for (int64_t i = 0; i < std::min(count, data.size()); ++i) {
    const auto source = data.source(i), target = data.target(i);
    pairs.push_back({{source.begin(), source.end()}, {target.begin(), target.end()}});
  }
  return data::Dataset::from_pairs(pairs, data.decoder_only());
}

}  // namespace

CommandOptions add_evaluate(CommandOptions root, EvaluateCommand& command) {
  CommandOptions own =
      root.subcommand("evaluate", "Loss, perplexity, source gain and BLEU as JSON");
  own.required("model", command.model, "A run directory or a checkpoint");
  own.option("--split", command.split, "valid or test");
  own.option("--source", command.source, "Instead of a split: a file, plain or .gz");
  own.option("--reference", command.reference, "With --source: its translation, line by line");
  own.option("--sentences", command.sentences, "Only the first so many; 0: all");
  own.option("--samples", command.samples, "Translations to show");
  own.threads(command.threads);
  return own;
}

namespace {

std::string prefix_of(const EvaluateCommand& command, const Config& config) {
  return command.split == "test" ? config.data.test : config.data.valid;
}

// Every rank reads the texts.
void refuse_passing_texts(const EvaluateCommand& command, const Config& config) {
  std::vector<std::filesystem::path> passing;
  if (command.reference.empty())
    passing = data::passing_texts(config.data, prefix_of(command, config),
                                  config.model.kind == model::ModelKind::kDecoder);
  for (const std::string& file : {command.source, command.reference})
    if (!file.empty() && is_read_once(file)) passing.emplace_back(file);
  if (passing.empty()) return;
  fail<DataError>(command.reference.empty() ? "data." + command.split : "evaluate", ": ",
                  passing.front().string(),
                  " is no file, and every rank reads it; write the text to a file, or evaluate on "
                  "one rank");
}

data::CorpusFiles read_texts(const EvaluateCommand& command, const Config& config) {
  const bool is_decoder_only = config.model.kind == model::ModelKind::kDecoder;
  if (!command.reference.empty()) return data::read_files(command.source, command.reference);
  const std::string prefix = prefix_of(command, config);
  require(!prefix.empty(), "data.", command.split, ": the run's config names none; give --split ",
          command.split == "test" ? "valid" : "test", ", or files with ",
          is_decoder_only ? "" : "--source and ", "--reference");
  return data::read_corpus(prefix, config.data.source, config.data.target, is_decoder_only);
}

}  // namespace

int evaluate(const EvaluateCommand& command, dist::Session& session, std::ostream& out) {
  require(command.split == "valid" || command.split == "test", "--split: got ", command.split,
          ", expected valid or test");
  dist::Communicator& group = session.world();
  const int cores = cores_of_rank(session.node());
  LoadedModel loaded = load_model(command.model, command.threads > 0 ? command.threads : cores);
  const Config& config = loaded.config;
  const bool is_decoder_only = config.model.kind == model::ModelKind::kDecoder;
  require(command.source.empty() == (command.reference.empty() || is_decoder_only),
          is_decoder_only ? "--source: a decoder-only model reads no source"
                          : "--source and --reference go together");
  if (group.size() > 1) refuse_passing_texts(command, config);
  data::Corpus corpus =
      data::evaluation_corpus(read_texts(command, config), config.data.on_bad_line);
  data::SplitReport report;
  data::Dataset data =
      data::encode_evaluation(corpus, *loaded.tokenizer, config.data.max_length, report);
  if (command.sentences > 0) data = first_pairs(data, command.sentences);

  const Validation result =
      validate(*loaded.model, *loaded.device, data, config.batch.micro_tokens, group);
  ordered_json json = {{"model", loaded.checkpoint.string()},
                       {"step", loaded.step},
                       {"topology", config.model.topology}};
  if (command.reference.empty()) json["split"] = command.split;
  if (!command.source.empty()) json["source"] = command.source;
  if (!command.reference.empty()) json["reference"] = command.reference;
  json.update(ordered_json{{"sentences", data.size()},
                           {"tokens", result.tokens},
                           {"loss", number(result.nll)},
                           {"perplexity", number(std::exp(result.nll))}});
  if (!is_decoder_only) {
    const SplitScore score = score_split(*loaded.model, *loaded.device, data, corpus.target,
                                         *loaded.tokenizer, config.batch.micro_tokens, group);
    json["source_gain"] = number(result.source_gain);
    json["bleu"] = score.bleu;
    json["bleu_line"] = score.line;
    json["signature"] = score.signature;
    json["chrf2"] = score.chrf;
    json["chrf2++"] = score.chrf_plus_plus;
    for (size_t i = 0; i < size_t(std::min(command.samples, data.size())); ++i)
      json["samples"].push_back({{"source", corpus.source[i]},
                                 {"reference", corpus.target[i]},
                                 {"translation", score.translations[i]}});
  }
  // A path may hold bytes that are not UTF-8.
  constexpr auto kReplace = ordered_json::error_handler_t::replace;
  if (group.rank() == 0) out << json.dump(2, ' ', false, kReplace) << "\n" << std::flush;
  return 0;
}

}  // namespace fathom::launcher
