#include "core/score/ngrams.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/score/unicode.h"

namespace fathom::score {

NgramCounts count_word_ngrams(std::u32string_view line, int order) {
  NgramCounts counts;
  const std::vector<std::u32string_view> words = split_words(line);
  const auto n = size_t(order);
  for (size_t i = 0; i + n <= words.size(); ++i) {
    const char32_t* begin = words[i].data();
    const std::u32string_view& last = words[i + n - 1];
    ++counts[{begin, size_t(last.data() + last.size() - begin)}];
  }
  return counts;
}

NgramCounts count_char_ngrams(std::u32string_view line, int order) {
  NgramCounts counts;
  const auto n = size_t(order);
  for (size_t i = 0; i + n <= line.size(); ++i) ++counts[line.substr(i, n)];
  return counts;
}

int64_t total(const NgramCounts& counts) {
  int64_t sum = 0;
  for (const auto& [ngram, count] : counts) sum += count;
  return sum;
}

int64_t overlap(const NgramCounts& a, const NgramCounts& b) {
  int64_t sum = 0;
  for (const auto& [ngram, count] : a) {
    const auto found = b.find(ngram);
    if (found != b.end()) sum += std::min(count, found->second);
  }
  return sum;
}

}  // namespace fathom::score
