#include "launcher/check_texts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/base/file.h"
#include "core/data/batch_plan.h"
#include "core/data/token_estimate.h"

namespace fathom::launcher {
namespace {

namespace fs = std::filesystem;

bool is_decoder(const Config& config) { return config.model.kind == model::ModelKind::kDecoder; }

struct Split {
  data::CorpusFiles files;
  data::Corpus corpus;
};

// None: something is wrong with it, or it cannot be looked at.
std::optional<Split> read_split(const Config& config, const std::string& prefix, bool is_training,
                                Problems& problems, std::vector<std::string>& warnings) {
  std::optional<data::Text> source, target;
  bool is_good = true;
  const auto read = [&](const std::string& ending, std::optional<data::Text>& text) {
    const std::string path = prefix + "." + ending;
    if (is_read_once(path)) {  // and that is left to the run
      warnings.push_back(path + " is no file and can be read only once: it is not checked");
      is_good = false;
    } else if (!problems.attempt([&] { text = data::read_text(path); })) {
      is_good = false;
    }
  };
  if (!is_decoder(config)) read(config.data.source, source);
  read(config.data.target, target);
  if (!is_good) return std::nullopt;
  if (source) is_good = problems.attempt([&] { data::check_line_counts(*source, *target); });
  if (config.data.on_bad_line == data::OnBadLine::kFail)
    for (const auto* text : {&source, &target})
      if (*text && !problems.attempt([&] { data::refuse_bad_lines(**text); })) is_good = false;
  if (!is_good) return std::nullopt;
  Split split{{std::move(source), *std::move(target)}, {}};
  const data::OnBadLine rule = config.data.on_bad_line;
  if (!problems.attempt([&] {
        split.corpus = is_training ? data::training_corpus(split.files, rule)
                                   : data::evaluation_corpus(split.files, rule);
      }))
    return std::nullopt;
  warnings.insert(warnings.end(), split.corpus.notes.begin(), split.corpus.notes.end());
  return split;
}

// Tokens of the pairs, EOS included, by the tokenizer that there is or by the text alone.
class PairLengthEstimate {
 public:
  PairLengthEstimate(const data::Corpus& corpus, const data::Tokenizer* tokenizer,
                     int64_t vocabulary_size)
      : corpus_(corpus) {
    letters_per_token_ = data::letters_per_token(vocabulary_size);
    if (tokenizer == nullptr) return;
    // What it makes of some lines, against the estimate for them.
    constexpr int64_t kSample = 2000;
    const int64_t every = std::max<int64_t>(1, corpus.size() / kSample);
    double tokens = 0, estimated = 0;
    for (int64_t i = 0; i < corpus.size(); i += every) {
      tokens += double(tokenizer->encode(corpus.target[size_t(i)]).size());
      estimated += data::estimated_tokens(corpus.target[size_t(i)], letters_per_token_);
    }
    if (estimated > 0) factor_ = tokens / estimated;
  }

  [[nodiscard]] double of(int64_t i) const {
    const auto tokens = [&](const std::string& line) {
      return factor_ * data::estimated_tokens(line, letters_per_token_) + 1;
    };
    const double target = tokens(corpus_.target[size_t(i)]);
    return corpus_.source.empty() ? target : std::max(target, tokens(corpus_.source[size_t(i)]));
  }

 private:
  const data::Corpus& corpus_;
  double letters_per_token_;
  double factor_ = 1;
};

// A pair that is longer than a batch is refused once the data set is built. From the text it can
// only be guessed, so what is said is said of pairs that are too long by a wide margin.
void check_longest_pair(const Config& config, const PairLengthEstimate& lengths, int64_t pairs,
                        const char* key, int64_t limit, Problems& problems,
                        std::vector<std::string>& warnings) {
  constexpr double kMargin = 1.25;
  const double most = double(config.data.max_length + 1);
  if (double(limit) >= most) return;
  const std::string remedy =
      join("raise it to ", config.data.max_length + 1,
           limit > 1 ? join(", or lower data.max_length to ", limit - 1) : "");
  int64_t too_long = 0;
  for (int64_t i = 0; i < pairs; ++i) {
    const double tokens = lengths.of(i);
    too_long += int64_t(tokens > kMargin * double(limit) && kMargin * tokens < most);
  }
  if (too_long > 0)
    problems.add(
        InvalidArgument(join("data.train: about ", too_long, " pairs have more than ", limit,
                             " tokens with EOS, but ", key, " is ", limit, "; ", remedy)));
  else
    warnings.push_back(
        join(key, " ", limit, " is less than a pair of data.max_length ", config.data.max_length,
             " tokens and EOS; if there is one the run is refused. To be safe, ", remedy));
}

// Pairs and steps of the data set that will be built.
void estimate_epoch(const Config& config, const data::Corpus& corpus,
                    const data::Tokenizer* tokenizer, CheckedTexts& out, Problems& problems) {
  const PairLengthEstimate lengths(corpus, tokenizer, config.data.vocabulary_size);
  double cost = 0;
  int64_t pairs = 0;
  for (int64_t i = 0; i < corpus.size(); ++i) {
    const double tokens = lengths.of(i);
    if (tokens > double(config.data.max_length + 1)) continue;
    cost += tokens;
    ++pairs;
  }
  // A batch ends before the pair that does not fit: on average half of one stays empty.
  const double mean = cost / double(std::max<int64_t>(1, pairs));
  const double room = std::max(1.0, double(config.batch.tokens) - mean / 2);
  out.steps_per_epoch = std::max<int64_t>(1, std::llround(cost / room));
  for (const auto& [key, limit] : {std::pair("batch.micro_tokens", config.batch.micro_tokens),
                                   std::pair("batch.tokens", config.batch.tokens)})
    check_longest_pair(config, lengths, corpus.size(), key, limit, problems, out.warnings);
}

std::unique_ptr<data::Tokenizer> read_tokenizer(const std::string& path, Problems& problems) {
  std::unique_ptr<data::Tokenizer> tokenizer;
  if (!path.empty())
    problems.attempt(
        [&] { tokenizer = std::make_unique<data::Tokenizer>(data::Tokenizer::load(path)); });
  return tokenizer;
}

}  // namespace

CheckedTexts check_texts(const Config& config, Problems& problems) {
  const size_t before = problems.errors().size();
  CheckedTexts out;
  std::optional<Split> train, valid, test;
  bool is_seen = true;
  const auto read = [&](const char* name, const std::string& prefix, std::optional<Split>& split) {
    if (prefix.empty()) return;
    split = read_split(config, prefix, name == std::string("train"), problems, out.warnings);
    is_seen = is_seen && split.has_value();
    if (split)
      out.splits[name] = {split->files.target.size(), split->corpus.size(), split->corpus.counts};
  };
  if (!config.data.train.empty())  // that it is needed is another problem
    problems.attempt([&] { data::check_keys(config.data, is_decoder(config)); });
  read("train", config.data.train, train);
  read("valid", config.data.valid, valid);
  read("test", config.data.test, test);
  const std::unique_ptr<data::Tokenizer> tokenizer =
      read_tokenizer(config.data.tokenizer_model, problems);
  if (tokenizer) out.pieces = tokenizer->size();
  if (!is_seen || !train || problems.errors().size() > before) {
    // What the missing splits hold changes nothing here.
    if (train) estimate_epoch(config, train->corpus, tokenizer.get(), out, problems);
    return out;
  }

  data::Corpus corpus = std::move(train->corpus);
  data::Texts texts{std::move(train->files), {}, {}};
  if (valid) texts.valid = std::move(valid->files);
  if (test) texts.test = std::move(test->files);
  std::optional<data::PreparedData> data;
  if (!problems.attempt(
          [&] { data = data::find_prepared(texts, config.data, is_decoder(config)); }))
    return out;
  if (!data) {
    estimate_epoch(config, corpus, tokenizer.get(), out, problems);
    return out;
  }
  out.prepared = data->directory;
  out.pieces = data->tokenizer->size();
  out.splits = data->reports;
  const data::PairLengths lengths = data->train.lengths();
  problems.attempt([&] {
    out.steps_per_epoch = data::EpochPlan(lengths, config.batch, config.run.seed, 0).batch_count();
  });
  return out;
}

}  // namespace fathom::launcher
