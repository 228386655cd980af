// BLEU (Papineni et al. 2002) with the definition, the printed line and the signature of sacreBLEU
// 2.6.0. The signature's fields have the same meaning; its version names this program, because a
// number that sacreBLEU did not compute should not claim so.
// Numbers are equal for the same Unicode version (categories for intl, lower case).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/score/bleu_tokenizer.h"

namespace fathom::score {

// What an order without a match counts as (Chen & Cherry 2014): exp halves from order to order
// (method 3), floor is 0.1 matches (method 1), add-k adds 1 to matches and total of every order but
// the first (method 2).
enum class BleuSmoothing { kExp, kFloor, kAddK, kNone };

struct BleuOptions {
  BleuTokenizer tokenizer = BleuTokenizer::k13a;
  BleuSmoothing smoothing = BleuSmoothing::kExp;
  bool lowercase = false;
  bool effective_order = false;  // leave out orders longer than every hypothesis
};

struct BleuScore {
  double score = 0;                    // 0 to 100
  std::array<double, 4> precisions{};  // smoothed, in percent, orders 1 to 4
  double brevity_penalty = 0;
  int64_t hypothesis_length = 0;    // words
  int64_t reference_length = 0;     // words of the reference closest in length, per line
  std::array<int64_t, 4> counts{};  // matching n-grams, clipped; before smoothing
  std::array<int64_t, 4> totals{};  // n-grams of the hypothesis
  int64_t references = 0;           // per line
};

// `references` holds one vector per reference stream, each as long as `hypotheses`; a line is UTF-8
// without LF. An empty reference line is a reference of no words. Throws DataError for streams of
// different length (with both counts) or no lines.
[[nodiscard]] BleuScore corpus_bleu(std::span<const std::string> hypotheses,
                                    std::span<const std::vector<std::string>> references,
                                    const BleuOptions& options = {});

// BLEU of one sentence; the effective order is used whatever `options` says.
[[nodiscard]] BleuScore sentence_bleu(const std::string& hypothesis,
                                      std::span<const std::string> references,
                                      BleuOptions options = {});

// "BLEU = 35.37 70.1/44.2/29.4/20.0 (BP = 0.980 ratio = 0.981 hyp_len = 3015 ref_len = 3073)"
[[nodiscard]] std::string to_line(const BleuScore& score);

// "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:fathom-0.1.0"
[[nodiscard]] std::string signature(const BleuScore& score, const BleuOptions& options = {});

// exp, floor, add-k, none; the inverse throws InvalidArgument naming what is allowed.
[[nodiscard]] const char* to_string(BleuSmoothing smoothing);
[[nodiscard]] BleuSmoothing parse_bleu_smoothing(std::string_view name);

}  // namespace fathom::score
