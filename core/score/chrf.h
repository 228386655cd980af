// chrF (Popovic 2015, 2016) and chrF++ (2017) with the definition of sacreBLEU 2.6.0: F-score of
// character n-grams without white space, averaged over the orders that both sides have, and for
// chrF++ also of word n-grams. With several references the best one counts, per line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fathom::score {

struct ChrfOptions {
  int char_order = 6;
  int word_order = 0;  // 2 is chrF++
  int beta = 2;        // recall weighs beta^2 times as much as precision
  bool lowercase = false;
};

inline constexpr ChrfOptions kChrf2;
inline constexpr ChrfOptions kChrf2PlusPlus{.word_order = 2};

struct ChrfScore {
  double score = 0;        // 0 to 100
  int64_t references = 0;  // per line
};

// Arguments and DataErrors as in `corpus_bleu`. Throws InvalidArgument for char_order or beta under
// 1 or word_order under 0.
[[nodiscard]] ChrfScore corpus_chrf(std::span<const std::string> hypotheses,
                                    std::span<const std::vector<std::string>> references,
                                    const ChrfOptions& options = {});

// "chrF2 = 59.39", "chrF2++ = 54.87"
[[nodiscard]] std::string to_line(const ChrfScore& score, const ChrfOptions& options = {});

// "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:fathom-0.1.0"
[[nodiscard]] std::string signature(const ChrfScore& score, const ChrfOptions& options = {});

}  // namespace fathom::score
