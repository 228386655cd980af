// The sentences of one split, after the rules that decide what may be used. Training drops a bad
// pair and counts it under its reason; validation and test keep every line, since line n of the
// output must belong to line n of the input. A decoder-only model reads the target side alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/data/config.h"
#include "core/data/lines.h"

namespace fathom::data {

// Reason -> number of pairs. Reasons: empty_source, empty_target, invalid_utf8, carriage_return,
// nul_byte, too_long.
using DropCounts = std::map<std::string, int64_t>;

// The files of one split, as read.
struct CorpusFiles {
  std::optional<Text> source;  // none for a decoder-only model
  Text target;
};

struct Corpus {
  std::vector<std::string> source;  // empty for a decoder-only model
  std::vector<std::string> target;
  DropCounts counts;               // training: pairs dropped; validation, test: pairs repaired
  std::vector<std::string> notes;  // for the log, one sentence each

  [[nodiscard]] int64_t size() const { return int64_t(target.size()); }
};

// DataError when they have not the same number of lines, with both.
void check_line_counts(const Text& source, const Text& target);

// DataError at the first line that on_bad_line: fail refuses, with the number of such lines.
void refuse_bad_lines(const Text& text);

// Reads `PREFIX.SOURCE` and `PREFIX.TARGET`. DataError when their numbers of lines differ, with
// both counts and both paths.
[[nodiscard]] CorpusFiles read_corpus(const std::string& prefix, const std::string& source,
                                      const std::string& target, bool decoder_only);

// The same, of two files of any name. `source` is empty for a decoder-only model.
[[nodiscard]] CorpusFiles read_files(const std::string& source, const std::string& target);

// The pairs to train on. With kFail the first bad line is a DataError with its place; blank and
// over-long lines are dropped and counted under either rule. DataError when no pair is left.
[[nodiscard]] Corpus training_corpus(const CorpusFiles& files, OnBadLine on_bad_line);

// All pairs, n lines in, n pairs out. With kSkip a bad line is repaired (see `repaired`) and
// counted.
[[nodiscard]] Corpus evaluation_corpus(const CorpusFiles& files, OnBadLine on_bad_line);

// read_corpus, then training_corpus.
[[nodiscard]] Corpus load_parallel(const std::string& prefix, const std::string& source,
                                   const std::string& target, OnBadLine on_bad_line);

// "empty_source 3, invalid_utf8 1"; "none" when there are none.
[[nodiscard]] std::string describe(const DropCounts& counts);

}  // namespace fathom::data
