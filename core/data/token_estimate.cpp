#include "core/data/token_estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/text.h"

namespace fathom::data {
namespace {

// Measured on German and English sentences (configs/corpora/tatoeba-deen); between the sizes it is
// close to linear in the logarithm.
constexpr std::array<std::pair<double, double>, 5> kMeasured = {
    {{250, 1.85}, {1000, 2.74}, {4000, 3.62}, {8000, 4.0}, {32000, 4.6}}};

// Chinese, Japanese, Korean: from U+2E80 on, three bytes or four. Their words have one or two.
bool is_ideograph(std::string_view text, size_t at, size_t bytes) {
  return bytes >= 3 && uint8_t(text[at]) >= 0xE2 &&
         !(uint8_t(text[at]) == 0xE2 && uint8_t(text[at + 1]) < 0xBA);
}

}  // namespace

double letters_per_token(int64_t vocabulary_size) {
  const double size = double(vocabulary_size);
  if (size <= kMeasured.front().first) return kMeasured.front().second;
  for (size_t i = 1; i < kMeasured.size(); ++i) {
    const auto& [low, least] = kMeasured[i - 1];
    const auto& [high, most] = kMeasured[i];
    if (size <= high) return least + (most - least) * std::log(size / low) / std::log(high / low);
  }
  return kMeasured.back().second;
}

double estimated_tokens(std::string_view line, double letters_per_token) {
  constexpr double kOfAnIdeograph = 2.0 / 3;
  int64_t letters = 0, ideographs = 0, words = 0;
  bool is_in_word = false;
  for (size_t at = 0; at < line.size();) {
    const size_t bytes = std::max<size_t>(1, utf8_length(line, at));
    const bool is_space = line[at] == ' ' || line[at] == '\t' || line[at] == '\r';
    if (!is_space && !is_in_word) ++words;
    is_in_word = !is_space;
    if (is_ideograph(line, at, bytes))
      ++ideographs;
    else if (!is_space)
      ++letters;
    at += bytes;
  }
  const double in_words = double(letters + words) / letters_per_token;
  return std::max(double(words), in_words) + double(ideographs) * kOfAnIdeograph;
}

}  // namespace fathom::data
