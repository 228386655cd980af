// From text files to a tokenizer and the data sets of the three splits. The result is a directory:
//
//   data.json         reports and hashes of the files below; written last
//   tokenizer.model   train.bin   valid.bin   test.bin
//
// It is named by a fingerprint of the texts and of the keys that shape the result, built once under
// a lock, under a temporary name, and made visible by one rename; any number of processes may
// prepare it at once. A set that is stale or damaged is rebuilt.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/config.h"
#include "core/data/corpus.h"
#include "core/data/dataset.h"
#include "core/data/tokenizer.h"

namespace fathom::data {

// The lines of one split. In training `counts` are dropped pairs by reason; in validation and test,
// pairs that were repaired or truncated ("truncated"), but kept.
struct SplitReport {
  int64_t lines = 0;
  int64_t pairs = 0;
  DropCounts counts;
};

struct PreparedData {
  std::filesystem::path directory;
  std::string fingerprint;   // of the texts and the keys
  std::string content_hash;  // of tokenizer and tokens: ranks must agree on it
  std::shared_ptr<const Tokenizer> tokenizer;
  Dataset train;
  std::optional<Dataset> valid, test;          // where the config names them
  std::map<std::string, SplitReport> reports;  // by "train", "valid", "test"
  double unigram_entropy = 0;                  // nats, target tokens of train with EOS
  std::vector<std::string> notes;              // for the log: what was unusual
  bool built = false;                          // by this call
};

// The texts of all splits, read once: the hashed bytes are the ones used.
struct Texts {
  CorpusFiles train;
  std::optional<CorpusFiles> valid, test;
};

// What the keys of a data set may not be, whatever the texts are: InvalidArgument.
void check_keys(const DataConfig& config, bool decoder_only);

// The set that prepare() would find, or none: it would have to be built, or rebuilt. Nothing is
// written, and no lock taken.
[[nodiscard]] std::optional<PreparedData> find_prepared(const Texts& texts,
                                                        const DataConfig& config,
                                                        bool decoder_only);

// Texts of `prefix`, one of the config's, that can be read only once, as a pipe; empty as a rule.
[[nodiscard]] std::vector<std::filesystem::path> passing_texts(const DataConfig& config,
                                                               const std::string& prefix,
                                                               bool decoder_only);

// `phase` is the current phase, `fraction` how much of it is done, 0 to 1.
using PrepareProgress = std::function<void(std::string_view phase, double fraction)>;

// `tokenizer`: the bytes of the model to use; empty: those of config.tokenizer_model, and where
// that is empty too the model is learned from the training text.
//
// DataError for errors in the texts and the model, InvalidArgument for the config (also when
// data.directory holds files that are not of a data set), IoError for failed reads and writes.
[[nodiscard]] PreparedData prepare(const DataConfig& config, bool decoder_only,
                                   const PrepareProgress& progress = {},
                                   std::string tokenizer = {});

// The raw lines of valid or test (`prefix` is one of the config's), n lines in, n out: what to
// translate, and the references to score against.
[[nodiscard]] Corpus evaluation_text(const DataConfig& config, const std::string& prefix,
                                     bool decoder_only);

// The tokens of `corpus` for validation and test: every pair stays, a side over `max_length` tokens
// is truncated and its pair counted as "truncated" in report.counts.
[[nodiscard]] Dataset encode_evaluation(const Corpus& corpus, const Tokenizer& tokenizer,
                                        int64_t max_length, SplitReport& report);

}  // namespace fathom::data
