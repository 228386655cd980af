#include "core/score/chrf.h"

#include <cstddef>
#include <string_view>

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/score/ngrams.h"
#include "core/score/segments.h"
#include "core/score/unicode.h"

namespace fathom::score {
namespace {

struct Matches {
  int64_t hypothesis = 0, reference = 0, common = 0;
};
using Statistics = std::vector<Matches>;  // character orders, then word orders

// ASCII punctuation, Python's string.punctuation.
bool is_chrf_punctuation(char32_t c) {
  return (c >= U'!' && c <= U'/') || (c >= U':' && c <= U'@') || (c >= U'[' && c <= U'`') ||
         (c >= U'{' && c <= U'~');
}

// One mark is cut off a word: the last character if it is one, else the first: "(hi)" gives "(hi"
// and ")".
std::u32string separate_punctuation(std::u32string_view line) {
  std::vector<std::u32string_view> words;
  for (const std::u32string_view word : split_words(line)) {
    const size_t last = word.size() - 1;
    if (last > 0 && is_chrf_punctuation(word.back())) {
      words.insert(words.end(), {word.substr(0, last), word.substr(last)});
    } else if (last > 0 && is_chrf_punctuation(word.front())) {
      words.insert(words.end(), {word.substr(0, 1), word.substr(1)});
    } else {
      words.push_back(word);
    }
  }
  return join_words(words);
}

std::u32string remove_spaces(std::u32string_view line) {
  std::u32string result;
  for (const char32_t c : line)
    if (!is_space(c)) result.push_back(c);
  return result;
}

// One line's n-grams. The counts view the texts, so a LineNgrams never moves.
class LineNgrams {
 public:
  LineNgrams(std::u32string_view line, const ChrfOptions& options)
      : characters_(remove_spaces(line)), words_(separate_punctuation(line)) {
    for (int n = 1; n <= options.char_order; ++n)
      counts_.push_back(count_char_ngrams(characters_, n));
    for (int n = 1; n <= options.word_order; ++n) counts_.push_back(count_word_ngrams(words_, n));
  }
  LineNgrams(const LineNgrams&) = delete;
  LineNgrams& operator=(const LineNgrams&) = delete;

  [[nodiscard]] const std::vector<NgramCounts>& counts() const { return counts_; }

 private:
  std::u32string characters_, words_;
  std::vector<NgramCounts> counts_;
};

Statistics match(const LineNgrams& hypothesis, const LineNgrams& reference) {
  Statistics statistics;
  for (size_t i = 0; i < hypothesis.counts().size(); ++i) {
    const NgramCounts& h = hypothesis.counts()[i];
    const NgramCounts& r = reference.counts()[i];
    // An order that the reference is too short for must not cost precision.
    statistics.push_back({r.empty() ? 0 : total(h), total(r), overlap(h, r)});
  }
  return statistics;
}

// F = (1 + beta^2) P R / (beta^2 P + R), P and R averaged over the orders both sides have.
double f_score(const Statistics& statistics, int beta) {
  double precision = 0, recall = 0;
  int orders = 0;
  for (const Matches& m : statistics) {
    if (m.hypothesis == 0 || m.reference == 0) continue;
    precision += double(m.common) / double(m.hypothesis);
    recall += double(m.common) / double(m.reference);
    ++orders;
  }
  if (orders == 0) return 0;
  precision /= orders;
  recall /= orders;
  if (precision + recall == 0) return 0;
  const double factor = double(beta) * beta;
  double score = (1 + factor) * precision * recall;
  score /= factor * precision + recall;
  return 100 * score;
}

Statistics best_match(const Segment& segment, const ChrfOptions& options) {
  const LineNgrams hypothesis(segment.hypothesis, options);
  Statistics best;
  double best_score = -1;
  for (const std::u32string& text : segment.references) {
    const LineNgrams reference(text, options);
    Statistics statistics = match(hypothesis, reference);
    const double score = f_score(statistics, options.beta);
    if (score > best_score) {
      best_score = score;
      best = std::move(statistics);
    }
  }
  return best;
}

}  // namespace

ChrfScore corpus_chrf(std::span<const std::string> hypotheses,
                      std::span<const std::vector<std::string>> references,
                      const ChrfOptions& options) {
  require(options.char_order >= 1 && options.word_order >= 0 && options.beta >= 1,
          "chrf: got char_order ", options.char_order, ", word_order ", options.word_order,
          ", beta ", options.beta, ", expected at least 1, 0 and 1");
  const Segments segments = align_segments("chrf", hypotheses, references, options.lowercase);
  Statistics sum(size_t(options.char_order + options.word_order));
  for (const Segment& segment : segments.lines) {
    const Statistics statistics = best_match(segment, options);
    for (size_t i = 0; i < sum.size(); ++i) {
      sum[i].hypothesis += statistics[i].hypothesis;
      sum[i].reference += statistics[i].reference;
      sum[i].common += statistics[i].common;
    }
  }
  return {f_score(sum, options.beta), segments.references};
}

std::string to_line(const ChrfScore& score, const ChrfOptions& options) {
  const std::string pluses(size_t(options.word_order), '+');
  return fmt::format("chrF{}{} = {:.2f}", options.beta, pluses, score.score);
}

std::string signature(const ChrfScore& score, const ChrfOptions& options) {
  return fmt::format("nrefs:{}|case:{}|eff:yes|nc:{}|nw:{}|space:no|version:fathom-{}",
                     score.references, options.lowercase ? "lc" : "mixed", options.char_order,
                     options.word_order, FATHOM_SCORE_VERSION);
}

}  // namespace fathom::score
