#include "core/data/prepare.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/base/limits.h"
#include "core/base/thread_pool.h"
#include "core/data/prepared_directory.h"

namespace fathom::data {
namespace {

namespace fs = std::filesystem;

std::optional<CorpusFiles> read_split(const DataConfig& config, const std::string& prefix,
                                      bool decoder_only) {
  if (prefix.empty()) return std::nullopt;
  return read_corpus(prefix, config.source, config.target, decoder_only);
}

Texts read_texts(const DataConfig& config, bool decoder_only) {
  check_keys(config, decoder_only);
  return {*read_split(config, config.train, decoder_only),
          read_split(config, config.valid, decoder_only),
          read_split(config, config.test, decoder_only)};
}

// Said only where it is set, so that data sets of versions without it are found.
std::string coverage_of(const DataConfig& config) {
  const double coverage = config.character_coverage;
  return coverage > 0 ? join("\ncharacter_coverage ", coverage) : "";
}

// `model`: the bytes of a tokenizer that is not learned, or empty.
std::string fingerprint_of(const Texts& texts, const DataConfig& config, bool decoder_only,
                           const std::string& model) {
  const std::string tokenizer =
      model.empty() ? join("\nvocabulary_size ", config.vocabulary_size, "\ntokenizer ",
                           int(config.tokenizer), coverage_of(config))
                    : join("\ntokenizer_model ", xxh3_128(model));
  std::string all =
      join("format ", kPreparedFormat, "\ndecoder_only ", decoder_only, "\nsource ",
           decoder_only ? "" : config.source, "\ntarget ", config.target, tokenizer,
           "\nmax_length ", config.max_length, "\non_bad_line ", int(config.on_bad_line));
  const auto add = [&](std::string_view name, const CorpusFiles* files) {
    if (files == nullptr) return;
    if (files->source) all += join("\n", name, " source ", xxh3_128(files->source->bytes()));
    all += join("\n", name, " target ", xxh3_128(files->target.bytes()));
  };
  add("train", &texts.train);
  add("valid", texts.valid ? &*texts.valid : nullptr);
  add("test", texts.test ? &*texts.test : nullptr);
  return xxh3_128(all);
}

// Many sentences per task keep the pool's overhead negligible; the result does not depend on it.
std::vector<TokenPair> encode(const Corpus& corpus, const Tokenizer& tokenizer,
                              const std::function<void(double)>& progress) {
  constexpr int64_t kPerTask = 512, kTasksPerRound = 64;
  std::vector<TokenPair> pairs(size_t(corpus.size()));
  ThreadPool pool(available_cores(), ThreadPool::Shortage::kAccept);
  for (int64_t first = 0; first < corpus.size(); first += kPerTask * kTasksPerRound) {
    progress(double(first) / double(corpus.size()));
    pool.run(kTasksPerRound, [&](int64_t task) {
      const int64_t begin = first + task * kPerTask;
      const int64_t end = std::min(begin + kPerTask, corpus.size());
      for (int64_t i = begin; i < end; ++i) {
        TokenPair& pair = pairs[size_t(i)];
        if (!corpus.source.empty()) pair.source = tokenizer.encode(corpus.source[size_t(i)]);
        pair.target = tokenizer.encode(corpus.target[size_t(i)]);
      }
    });
  }
  progress(1);
  return pairs;
}

// Drops what only the tokens show: sides that normalise to nothing (a no-break space), long pairs.
Dataset training_set(const Corpus& corpus, const Tokenizer& tokenizer, int64_t max_length,
                     SplitReport& report, const std::function<void(double)>& progress) {
  const bool decoder_only = corpus.source.empty();
  std::vector<TokenPair> pairs = encode(corpus, tokenizer, progress);
  std::erase_if(pairs, [&](const TokenPair& pair) {
    const size_t longest = std::max(pair.source.size(), pair.target.size());
    const char* why = !decoder_only && pair.source.empty() ? "empty_source"
                      : pair.target.empty()                ? "empty_target"
                      : int64_t(longest) > max_length      ? "too_long"
                                                           : nullptr;
    if (why != nullptr) ++report.counts[why];
    return why != nullptr;
  });
  report.pairs = int64_t(pairs.size());
  require<DataError>(!pairs.empty(), "corpus: all ", report.lines, " training pairs were dropped (",
                     describe(report.counts), ")",
                     report.counts.contains("too_long")
                         ? join("; is data.max_length ", max_length, " too small?")
                         : "");
  return Dataset::from_pairs(pairs, decoder_only);
}

fs::path directory_of(const DataConfig& config, const std::string& fingerprint) {
  if (config.directory.empty()) return fs::path(".fathom") / "data" / fingerprint;
  fs::path directory = fs::path(config.directory).lexically_normal();
  if (!directory.has_filename()) directory = directory.parent_path();  // a trailing slash
  require(directory.has_filename() && directory != "." && directory.filename() != "..",
          "data.directory: \"", config.directory, "\" cannot be a data set; name a directory");
  return directory;
}

// Of a tokenizer that was not learned from the text, or not of all its characters.
void note_unknown_tokens(const Dataset& train, bool is_given, std::vector<std::string>& notes) {
  constexpr double kWorthANote = 0.001;
  int64_t unknown = 0;
  for (int64_t i = 0; i < train.size(); ++i) {
    const auto source = train.source(i), target = train.target(i);
    unknown += std::count(source.begin(), source.end(), kUnknownToken) +
               std::count(target.begin(), target.end(), kUnknownToken);
  }
  const double share = double(unknown) / double(train.source_tokens() + train.target_tokens());
  if (share > kWorthANote)
    notes.push_back(join("data.train: ", 100 * share,
                         " % of its tokens are unknown to the tokenizer, which ",
                         is_given ? "was not learned from this text"
                                  : "has no pieces for rare characters (data.character_coverage)"));
}

PreparedData build(const Texts& texts, const DataConfig& config, const std::string& model,
                   const PrepareProgress& progress) {
  const auto phase = [&](const char* name) {
    return [&progress, name](double fraction) { progress(name, fraction); };
  };
  Corpus train = training_corpus(texts.train, config.on_bad_line);
  std::optional<Corpus> valid, test;
  // Before the long work, so that a bad line in test is not found after it.
  if (texts.valid) valid = evaluation_corpus(*texts.valid, config.on_bad_line);
  if (texts.test) test = evaluation_corpus(*texts.test, config.on_bad_line);

  if (model.empty()) progress("learning the tokenizer", 0);
  auto tokenizer = std::make_shared<const Tokenizer>(
      model.empty() ? Tokenizer::train(train.source, train.target, config.tokenizer,
                                       config.vocabulary_size, config.character_coverage)
                    : Tokenizer::from_bytes(model));
  if (model.empty()) progress("learning the tokenizer", 1);

  std::map<std::string, SplitReport> reports;
  SplitReport& report = reports["train"];
  report = {texts.train.target.size(), 0, std::move(train.counts)};
  PreparedData data{
      .directory = {},
      .fingerprint = {},
      .content_hash = {},
      .tokenizer = tokenizer,
      .train = training_set(train, *tokenizer, config.max_length, report, phase("encoding")),
      .valid = {},
      .test = {},
      .reports = std::move(reports),
      .notes = std::move(train.notes),
      .built = true};
  const auto add = [&](const char* name, const std::optional<Corpus>& corpus,
                       std::optional<Dataset>& split) {
    if (!corpus) return;
    SplitReport& counts = data.reports[name];
    split = encode_evaluation(*corpus, *tokenizer, config.max_length, counts);
    data.notes.insert(data.notes.end(), corpus->notes.begin(), corpus->notes.end());
    if (counts.counts.contains("truncated"))
      data.notes.push_back(join("data.", name, ": cut ", counts.counts["truncated"], " of ",
                                counts.pairs, " pairs to data.max_length ", config.max_length));
  };
  note_unknown_tokens(data.train, !model.empty(), data.notes);
  add("valid", valid, data.valid);
  add("test", test, data.test);
  data.unigram_entropy = unigram_entropy(data.train);
  data.content_hash = hash_contents(data);
  return data;
}

// The set with a tokenizer learned from these texts, where that happens to be the one asked for.
std::optional<PreparedData> open_learned(const Texts& texts, const DataConfig& config,
                                         bool decoder_only, const std::string& model) {
  if (model.empty()) return std::nullopt;
  const std::string fingerprint = fingerprint_of(texts, config, decoder_only, "");
  std::string ignored;
  auto data = open_prepared(directory_of(config, fingerprint), fingerprint, ignored);
  const bool is_it = data && data->tokenizer->bytes() == model;
  return is_it ? std::move(data) : std::nullopt;
}

}  // namespace

void check_keys(const DataConfig& config, bool decoder_only) {
  require(!config.train.empty(), "data.train: empty, it must be the prefix of the training text");
  require(config.max_length >= 1, "data.max_length: ", config.max_length,
          ", it must be at least 1");
  require(decoder_only || config.source != config.target, "data.source: \"", config.source,
          "\" is the same as data.target; they name the two sides");
}

std::optional<PreparedData> find_prepared(const Texts& texts, const DataConfig& config,
                                          bool decoder_only) {
  const std::string model =
      config.tokenizer_model.empty() ? "" : Tokenizer::load(config.tokenizer_model).bytes();
  const std::string fingerprint = fingerprint_of(texts, config, decoder_only, model);
  std::string ignored;
  if (auto data = open_learned(texts, config, decoder_only, model)) return data;
  return open_prepared(directory_of(config, fingerprint), fingerprint, ignored);
}

std::vector<fs::path> passing_texts(const DataConfig& config, const std::string& prefix,
                                    bool decoder_only) {
  std::vector<fs::path> paths;
  const auto add = [&](const std::string& side) {
    for (const char* ending : {"", ".gz"}) {
      const fs::path path = prefix + "." + side + ending;
      std::error_code ignored;
      if (!fs::exists(path, ignored)) continue;
      if (is_read_once(path)) paths.push_back(path);
      return;  // the one that is read
    }
  };
  if (prefix.empty()) return paths;
  if (!decoder_only) add(config.source);
  add(config.target);
  return paths;
}

PreparedData prepare(const DataConfig& config, bool decoder_only,
                     const PrepareProgress& progress_or_none, std::string model) {
  const PrepareProgress progress =
      progress_or_none ? progress_or_none : [](std::string_view, double) {};
  progress("reading the text", 0);
  const Texts texts = read_texts(config, decoder_only);
  if (model.empty() && !config.tokenizer_model.empty())
    model = Tokenizer::load(config.tokenizer_model).bytes();
  const std::string fingerprint = fingerprint_of(texts, config, decoder_only, model);
  const fs::path directory = directory_of(config, fingerprint);
  progress("reading the text", 1);

  // Without the lock first: a complete set may be where this process cannot write.
  std::string why_not;
  if (auto data = open_learned(texts, config, decoder_only, model)) return *std::move(data);
  if (auto data = open_prepared(directory, fingerprint, why_not)) return *std::move(data);

  make_directories("data", parent_of(directory));
  FileLock lock(Directory("data", parent_of(directory), Directory::Links::kFollow),
                directory.filename().string() + ".lock");
  if (lock.state() == FileLock::State::kHeldByAnother)
    progress("waiting for another process to prepare", 0);
  const bool is_alone = lock.wait();
  if (auto data = open_prepared(directory, fingerprint, why_not)) return *std::move(data);

  refuse_foreign_files(directory);  // before the long work
  PreparedData data = build(texts, config, model, progress);
  data.fingerprint = fingerprint;
  data.directory = directory;
  progress("writing", 0);
  write_prepared(directory, data, is_alone);
  progress("writing", 1);

  // Everybody else will read what was written; read it in the same way.
  const std::string rebuilt = why_not;
  auto written = open_prepared(directory, fingerprint, why_not);
  require<IoError>(written.has_value(), "data: ", directory.string(),
                   " cannot be read back: ", why_not);
  written->built = true;
  if (!rebuilt.empty())
    written->notes.push_back(join("rebuilt ", directory.string(), ": ", rebuilt));
  return *std::move(written);
}

Corpus evaluation_text(const DataConfig& config, const std::string& prefix, bool decoder_only) {
  return evaluation_corpus(read_corpus(prefix, config.source, config.target, decoder_only),
                           config.on_bad_line);
}

Dataset encode_evaluation(const Corpus& corpus, const Tokenizer& tokenizer, int64_t max_length,
                          SplitReport& report) {
  const bool decoder_only = corpus.source.empty();
  std::vector<TokenPair> pairs = encode(corpus, tokenizer, [](double) {});
  report = {corpus.size(), corpus.size(), corpus.counts};
  for (TokenPair& pair : pairs) {
    if (int64_t(std::max(pair.source.size(), pair.target.size())) <= max_length) continue;
    ++report.counts["truncated"];
    pair.source.resize(std::min(pair.source.size(), size_t(max_length)));
    pair.target.resize(std::min(pair.target.size(), size_t(max_length)));
  }
  return Dataset::from_pairs(pairs, decoder_only);
}

}  // namespace fathom::data
