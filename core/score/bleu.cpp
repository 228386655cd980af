#include "core/score/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/score/ngrams.h"
#include "core/score/segments.h"
#include "core/score/unicode.h"

namespace fathom::score {
namespace {

constexpr size_t kOrders = 4;
constexpr double kFloor = 0.1;
constexpr double kAdded = 1.0;
constexpr double kLogOfZero = -9999999999.0;  // as in sacreBLEU; its exp is 0

std::u32string prepare(std::u32string line, BleuTokenizer tokenizer) {
  strip_right(line);
  return tokenize(tokenizer, line);
}

int64_t word_count(std::u32string_view line) {
  return line.empty() ? 0 : 1 + std::count(line.begin(), line.end(), U' ');
}

// Of two equally close lengths the shorter one.
int64_t closest_length(int64_t length, const std::vector<std::u32string>& references) {
  int64_t closest = word_count(references.front());
  for (const std::u32string& reference : references) {
    const int64_t candidate = word_count(reference);
    const int64_t nearer = std::abs(length - candidate) - std::abs(length - closest);
    if (nearer < 0 || (nearer == 0 && candidate < closest)) closest = candidate;
  }
  return closest;
}

// Every n-gram of order n with its highest count in any reference.
NgramCounts highest_counts(const std::vector<std::u32string>& references, int order) {
  NgramCounts highest;
  for (const std::u32string& reference : references)
    for (const auto& [ngram, count] : count_word_ngrams(reference, order))
      highest[ngram] = std::max(highest[ngram], count);
  return highest;
}

void add_segment(Segment segment, BleuTokenizer tokenizer, BleuScore& sum) {
  segment.hypothesis = prepare(std::move(segment.hypothesis), tokenizer);
  for (std::u32string& reference : segment.references)
    reference = prepare(std::move(reference), tokenizer);

  const int64_t length = word_count(segment.hypothesis);
  sum.hypothesis_length += length;
  sum.reference_length += closest_length(length, segment.references);
  for (size_t n = 0; n < kOrders; ++n) {
    const int order = int(n) + 1;
    const NgramCounts ngrams = count_word_ngrams(segment.hypothesis, order);
    sum.totals[n] += total(ngrams);
    sum.counts[n] += overlap(ngrams, highest_counts(segment.references, order));
  }
}

double brevity_penalty(int64_t hypothesis_length, int64_t reference_length) {
  if (hypothesis_length >= reference_length) return 1.0;
  if (hypothesis_length == 0) return 0.0;
  return std::exp(1.0 - double(reference_length) / double(hypothesis_length));
}

// BLEU = BP exp(1/N sum_n log p_n), with the operations in sacreBLEU's order: the last bit counts.
void finish(BleuScore& bleu, const BleuOptions& options) {
  bleu.brevity_penalty = brevity_penalty(bleu.hypothesis_length, bleu.reference_length);
  const bool has_match =
      std::any_of(bleu.counts.begin(), bleu.counts.end(), [](int64_t count) { return count > 0; });
  if (!has_match) return;

  double halvings = 1.0;
  size_t orders = kOrders;
  for (size_t n = 0; n < kOrders; ++n) {
    const double added = options.smoothing == BleuSmoothing::kAddK && n > 0 ? kAdded : 0.0;
    const double matches = double(bleu.counts[n]) + added;
    const double all = double(bleu.totals[n]) + added;
    if (all == 0) break;
    if (options.effective_order) orders = n + 1;
    if (matches > 0) {
      bleu.precisions[n] = 100.0 * matches / all;
    } else if (options.smoothing == BleuSmoothing::kExp) {
      halvings *= 2;
      bleu.precisions[n] = 100.0 / (halvings * all);
    } else if (options.smoothing == BleuSmoothing::kFloor) {
      bleu.precisions[n] = 100.0 * kFloor / all;
    }
  }
  double sum = 0;
  for (size_t n = 0; n < orders; ++n)
    sum += bleu.precisions[n] == 0 ? kLogOfZero : std::log(bleu.precisions[n]);
  bleu.score = bleu.brevity_penalty * std::exp(sum / double(orders));
}

std::string smoothing_field(BleuSmoothing smoothing) {
  if (smoothing == BleuSmoothing::kFloor) return fmt::format("floor[{:.2f}]", kFloor);
  if (smoothing == BleuSmoothing::kAddK) return fmt::format("add-k[{:.2f}]", kAdded);
  return to_string(smoothing);
}

}  // namespace

BleuScore corpus_bleu(std::span<const std::string> hypotheses,
                      std::span<const std::vector<std::string>> references,
                      const BleuOptions& options) {
  Segments segments = align_segments("bleu", hypotheses, references, options.lowercase);
  BleuScore bleu;
  bleu.references = segments.references;
  for (Segment& segment : segments.lines) add_segment(std::move(segment), options.tokenizer, bleu);
  finish(bleu, options);
  return bleu;
}

BleuScore sentence_bleu(const std::string& hypothesis, std::span<const std::string> references,
                        BleuOptions options) {
  options.effective_order = true;
  std::vector<std::vector<std::string>> streams;
  for (const std::string& reference : references) streams.push_back({reference});
  return corpus_bleu({&hypothesis, 1}, streams, options);
}

std::string to_line(const BleuScore& score) {
  const double ratio = score.reference_length == 0
                           ? 0.0
                           : double(score.hypothesis_length) / double(score.reference_length);
  const std::array<double, 4>& p = score.precisions;
  return fmt::format(
      "BLEU = {:.2f} {:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} "
      "ref_len = {})",
      score.score, p[0], p[1], p[2], p[3], score.brevity_penalty, ratio, score.hypothesis_length,
      score.reference_length);
}

std::string signature(const BleuScore& score, const BleuOptions& options) {
  return fmt::format("nrefs:{}|case:{}|eff:{}|tok:{}|smooth:{}|version:fathom-{}", score.references,
                     options.lowercase ? "lc" : "mixed", options.effective_order ? "yes" : "no",
                     to_string(options.tokenizer), smoothing_field(options.smoothing),
                     FATHOM_SCORE_VERSION);
}

const char* to_string(BleuSmoothing smoothing) {
  switch (smoothing) {
    case BleuSmoothing::kExp:
      return "exp";
    case BleuSmoothing::kFloor:
      return "floor";
    case BleuSmoothing::kAddK:
      return "add-k";
    case BleuSmoothing::kNone:
      return "none";
  }
  fail("bleu: unknown smoothing number ", int(smoothing));
}

BleuSmoothing parse_bleu_smoothing(std::string_view name) {
  for (const BleuSmoothing smoothing :
       {BleuSmoothing::kExp, BleuSmoothing::kFloor, BleuSmoothing::kAddK, BleuSmoothing::kNone})
    if (name == to_string(smoothing)) return smoothing;
  fail("bleu: got smoothing '", name, "', expected exp, floor, add-k or none");
}

}  // namespace fathom::score
