#include "launcher/suggest_config.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/token_estimate.h"
#include "launcher/config/yaml.h"

namespace fathom::launcher {
namespace {

constexpr int64_t kMaxLength = 256;  // data.max_length

// By tokens of the longer side.
struct ModelSize {
  double below;  // tokens
  const char* depth;
  int width, ffn_width, heads;
  const char* dropout;
  const char* learning_rate;
  int epochs;
  const char* reason;
};
constexpr ModelSize kModels[] = {
    {4e5, "E3D3", 128, 512, 4, "0.3", "2e-3", 30, "small: there is little to learn from"},
    {4e6, "E6D6", 256, 1024, 4, "0.3", "1e-3", 30, "half as wide as is usual for IWSLT'14"},
    {4e7, "E6D6", 512, 1024, 4, "0.3", "5e-4", 40, "as is usual for IWSLT'14"},
    {INFINITY, "E6D6", 512, 2048, 8, "0.1", "7e-4", 20, "Transformer base"}};

// To two digits.
int64_t rounded(double value) {
  const double unit =
      std::pow(10.0, std::max(0.0, std::floor(std::log10(std::max(value, 1.0))) - 1));
  return std::max<int64_t>(1, std::llround(std::round(value / unit) * unit));
}

struct Plan {
  int64_t vocabulary;
  double tokens;  // of the longer side of all pairs, with EOS
  const ModelSize& model;
  int64_t batch_tokens, micro_tokens, steps_per_epoch, max_steps, warmup, validate_every;
};

Plan plan_for(const CorpusSize& size) {
  const int64_t vocabulary = suggested_vocabulary(size);
  const double tokens = size.letters / data::letters_per_token(vocabulary) + double(size.pairs);
  const ModelSize& model =
      *std::ranges::find_if(kModels, [&](const ModelSize& m) { return tokens < m.below; });
  const int64_t most = size.pairs < 500'000 ? 4096 : size.pairs < 5'000'000 ? 8192 : 32768;
  constexpr double kStepsAnEpoch = 60;
  const auto fitting = int64_t(std::bit_floor(uint64_t(std::max(1.0, tokens / kStepsAnEpoch))));
  const int64_t batch = std::clamp<int64_t>(fitting, 512, most);
  const auto steps = std::max<int64_t>(1, std::llround(tokens / double(batch)));
  const int64_t max_steps =
      std::clamp<int64_t>(rounded(double(model.epochs * steps)), 500, 300'000);
  return {.vocabulary = vocabulary,
          .tokens = tokens,
          .model = model,
          .batch_tokens = batch,
          .micro_tokens = std::min<int64_t>(batch, 4096),
          .steps_per_epoch = steps,
          .max_steps = max_steps,
          .warmup = std::clamp<int64_t>(rounded(double(max_steps) / 10), 50, 4000),
          .validate_every = std::max<int64_t>(50, rounded(double(max_steps) / 20))};
}

// A line with its comment, which begins in the same column where that is free.
std::string line(const std::string& text, const std::string& comment) {
  return fmt::format("{:<34}# {}\n", text + " ", comment);
}

}  // namespace

CorpusSize size_of(const data::Corpus& corpus) {
  constexpr int64_t kSample = 200'000;  // lines that are looked at for words and characters
  CorpusSize size{.pairs = corpus.size()};
  std::set<std::string_view> characters;
  std::unordered_set<std::string_view> words;
  const int64_t every = std::max<int64_t>(1, corpus.size() / kSample);
  for (int64_t i = 0; i < corpus.size(); ++i) {
    double longest = 0;
    for (const auto* side : {&corpus.source, &corpus.target}) {
      const std::string_view text = (*side)[size_t(i)];
      longest = std::max(longest, data::estimated_tokens(text, 1));
      if (i % every != 0) continue;
      for (size_t at = 0; at < text.size();) {
        const size_t bytes = std::max<size_t>(1, utf8_length(text, at));
        characters.insert(text.substr(at, bytes));
        at += bytes;
      }
      for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find_first_of(" \t", at), text.size());
        if (end > at) words.insert(text.substr(at, end - at));
        at = end + 1;
      }
    }
    size.letters += longest;
  }
  size.characters = int64_t(characters.size());
  size.words = int64_t(words.size());
  for (const auto& [reason, count] : corpus.counts)
    if (reason == "invalid_utf8" || reason == "carriage_return" || reason == "nul_byte")
      size.bad_lines += count;
  return size;
}

int64_t suggested_vocabulary(const CorpusSize& size) {
  const int64_t usual = size.pairs < 5'000       ? 1000
                        : size.pairs < 50'000    ? 4000
                        : size.pairs < 500'000   ? 8000
                        : size.pairs < 5'000'000 ? 16000
                                                 : 32000;
  const int64_t most = size.characters + size.words / 2;  // a merge for each word, at the least
  return std::max<int64_t>(8, std::min(std::max(usual, 2 * size.characters), most));
}

std::string suggested_config(const Suggestion& given) {
  const Plan plan = plan_for(given.size);
  const ModelSize& model = plan.model;
  const auto key = [](const char* name, const auto& value) {
    return fmt::format("  {}: {}", name, value);
  };
  std::string out = fmt::format(
      "# Made by: {}\n"
      "# {} pairs, about {:.2g} tokens of the longer side. Look at it with `fathom config check`,\n"
      "# then `fathom train`. Every value may be changed; `fathom config keys` explains them.\n",
      given.command, given.size.pairs, plan.tokens);
  out += "run:\n" + key("name", quote_yaml(given.name)) + "\n";
  out += "data:\n";
  for (const auto& [name, value] :
       {std::pair("train", given.train), std::pair("valid", given.valid),
        std::pair("test", given.test), std::pair("source", given.source),
        std::pair("target", given.target)}) {
    const bool is_missing = value.empty() && name == std::string("valid");
    if (is_missing)
      out +=
          "  # Needed: some hundred pairs that training does not see. --hold-out 500 DIRECTORY\n"
          "  # sets them aside; --valid PREFIX names files of your own.\n";
    if (!value.empty() || is_missing) out += key(name, quote_yaml(value)) + "\n";
  }
  out += line(key("vocabulary_size", plan.vocabulary),
              join("for ", given.size.pairs, " pairs with ", given.size.characters,
                   " characters that differ"));
  out += line(key("max_length", kMaxLength), "tokens of a side; longer pairs are left out");
  if (given.size.bad_lines > 0)
    out += line(key("on_bad_line", "skip"),
                join(given.size.bad_lines, " pairs are no valid text and are left out"));
  out += "model:\n";
  out += line(key("topology", "pre-ln"), "residual and others: docs/topologies.md");
  out += line(key("depth", model.depth), model.reason);
  out += key("width", model.width) + "\n" + key("ffn_width", model.ffn_width) + "\n" +
         key("heads", model.heads) + "\n";
  out +=
      line(key("dropout", model.dropout), "less with more text: 0.1 from some millions of pairs");
  out += "batch:\n";
  out += line(key("tokens", plan.batch_tokens),
              join("about ", plan.steps_per_epoch, " steps an epoch"));
  out += line(key("micro_tokens", plan.micro_tokens), "less needs less memory");
  out += "optimizer:\n";
  out += line(key("learning_rate", model.learning_rate), "higher for narrower models");
  out += line(key("warmup_steps", plan.warmup), "a tenth of the run, at most 4000");
  out += line(key("label_smoothing", "0.1"), "usual for translation");
  out += "train:\n";
  out += line(
      key("max_steps", plan.max_steps),
      fmt::format("about {:.2g} epochs", double(plan.max_steps) / double(plan.steps_per_epoch)));
  out += line(key("validate_every", plan.validate_every), "some twenty times in all");
  out += line(key("patience", 8), "it ends after 8 validations without a better one");
  out += "checkpoint:\n";
  out += line(key("every_minutes", 10), "the most work that a crash can cost");
  return out;
}

}  // namespace fathom::launcher
