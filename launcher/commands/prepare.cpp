#include "launcher/commands/prepare.h"

#include <cstdio>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "core/base/error.h"
#include "core/data/prepare.h"
#include "launcher/config/load.h"

namespace fathom::launcher {
namespace {

void print_split(const data::PreparedData& data, const char* name, const data::Dataset& split) {
  const data::SplitReport& report = data.reports.at(name);
  const double pairs = double(split.size());
  fmt::print("{:<10} {} of {} pairs; ", name, report.pairs, report.lines);
  if (!split.decoder_only())
    fmt::print("{} source tokens ({:.1f} a pair), ", split.source_tokens(),
               double(split.source_tokens()) / pairs);
  fmt::print("{} target tokens ({:.1f} a pair)\n", split.target_tokens(),
             double(split.target_tokens()) / pairs);
  const bool training = std::string_view(name) == "train";
  if (!report.counts.empty())
    fmt::print("{:<10} {}: {}\n", "", training ? "dropped" : "repaired, kept",
               data::describe(report.counts));
}

}  // namespace

CommandOptions add_prepare(CommandOptions root, PrepareCommand& command) {
  CommandOptions own = root.subcommand("prepare", "Learn the tokenizer and build the data set");
  own.required("config", command.config, "A YAML file");
  own.optional("overrides", command.overrides, "key=value, wins over the file");
  return own;
}

int prepare(const PrepareCommand& command) {
  const Config config = load_config(command.config, command.overrides);
  std::string phase;
  const auto progress = [&](std::string_view now, double) {
    if (now == phase) return;
    phase = now;
    fmt::print(stderr, "prepare: {}\n", phase);
  };
  const data::PreparedData data =
      data::prepare(config.data, config.model.kind == model::ModelKind::kDecoder, progress);

  for (const std::string& note : data.notes) fmt::print(stderr, "prepare: note: {}\n", note);
  fmt::print("{:<10} {} ({})\n", "directory", data.directory.string(),
             data.built ? "built now" : "was there already");
  fmt::print("{:<10} {}, {} pieces\n", "tokenizer",
             config.data.tokenizer == data::TokenizerKind::kBpe ? "bpe" : "unigram",
             data.tokenizer->size());
  print_split(data, "train", data.train);
  if (data.valid) print_split(data, "valid", *data.valid);
  if (data.test) print_split(data, "test", *data.test);
  fmt::print("{:<10} {:.4f} nats per target token: the loss of knowing frequencies alone\n",
             "unigram", data.unigram_entropy);
  fmt::print("{:<10} {}\n", "content", data.content_hash);
  return int(ExitCode::kDone);
}

}  // namespace fathom::launcher
