// About how many tokens a text has, before a tokenizer is learned from it: from its words and
// letters alone, within a fifth for European languages.
#pragma once

#include <cstdint>
#include <string_view>

namespace fathom::data {

// Letters of a European language to a token of a BPE tokenizer of this size that was learned from
// the text, the space before a word counted.
[[nodiscard]] double letters_per_token(int64_t vocabulary_size);

// Tokens of a line, without EOS. A letter of a script without spaces counts as two thirds of one.
[[nodiscard]] double estimated_tokens(std::string_view line, double letters_per_token);

}  // namespace fathom::data
