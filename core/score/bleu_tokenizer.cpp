#include "core/score/bleu_tokenizer.h"

#include <cstddef>

#include "core/base/error.h"
#include "core/score/unicode.h"

namespace fathom::score {
namespace {

bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_not_digit(char32_t c) { return !is_digit(c); }
bool is_not_number(char32_t c) { return !is_number(c); }
bool is_dash(char32_t c) { return c == U'-'; }
bool is_period_or_comma(char32_t c) { return c == U'.' || c == U','; }

// Printable ASCII but letters, digits, apostrophe, comma, dash and period.
bool is_13a_separator(char32_t c) {
  return (c >= U'{' && c <= U'~') || (c >= U'[' && c <= U'`') || (c >= U' ' && c <= U'&') ||
         (c >= U'(' && c <= U'+') || (c >= U':' && c <= U'@') || c == U'/';
}

void replace_all(std::u32string& text, std::u32string_view from, std::u32string_view to) {
  size_t at = text.find(from);
  for (; at != std::u32string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// s/(one)/ $1 /g
template <class One>
std::u32string isolate(const std::u32string& text, One one) {
  std::u32string result;
  result.reserve(2 * text.size());
  for (const char32_t c : text) {
    if (one(c)) {
      result.append({U' ', c, U' '});
    } else {
      result.push_back(c);
    }
  }
  return result;
}

enum class Around { kSecond, kFirst };  // the one of a pair that gets a space on both sides

// s/(first)(second)/$1 $2 /g or s/(first)(second)/ $1 $2/g. As in a regular expression, a matched
// pair is consumed: its second character cannot be the first of the next pair.
template <class First, class Second>
std::u32string isolate_pair(const std::u32string& text, First first, Second second, Around around) {
  std::u32string result;
  result.reserve(2 * text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !first(text[i]) || !second(text[i + 1])) {
      result.push_back(text[i]);
      continue;
    }
    if (around == Around::kFirst) {
      result.append({U' ', text[i], U' ', text[i + 1]});
    } else {
      result.append({text[i], U' ', text[i + 1], U' '});
    }
    ++i;
  }
  return result;
}

std::u32string tokenize_13a(std::u32string text) {
  replace_all(text, U"<skipped>", U"");
  replace_all(text, U"-\n", U"");
  replace_all(text, U"\n", U" ");
  replace_all(text, U"&quot;", U"\"");
  replace_all(text, U"&amp;", U"&");
  replace_all(text, U"&lt;", U"<");
  replace_all(text, U"&gt;", U">");
  text.insert(text.begin(), U' ');
  text.push_back(U' ');
  text = isolate(text, is_13a_separator);
  text = isolate_pair(text, is_not_digit, is_period_or_comma, Around::kSecond);
  text = isolate_pair(text, is_period_or_comma, is_not_digit, Around::kFirst);
  return isolate_pair(text, is_digit, is_dash, Around::kSecond);
}

std::u32string tokenize_intl(std::u32string text) {
  text = isolate_pair(text, is_not_number, is_punctuation, Around::kSecond);
  text = isolate_pair(text, is_punctuation, is_not_number, Around::kFirst);
  return isolate(text, is_symbol);
}

std::u32string separate(BleuTokenizer tokenizer, const std::u32string& line) {
  switch (tokenizer) {
    case BleuTokenizer::k13a:
      return tokenize_13a(line);
    case BleuTokenizer::kIntl:
      return tokenize_intl(line);
    case BleuTokenizer::kChar:
      return isolate(line, [](char32_t) { return true; });
    case BleuTokenizer::kNone:
      return line;
  }
  fail("bleu: unknown tokenizer number ", int(tokenizer));
}

}  // namespace

std::u32string tokenize(BleuTokenizer tokenizer, const std::u32string& line) {
  const std::u32string separated = separate(tokenizer, line);
  return join_words(split_words(separated));
}

const char* to_string(BleuTokenizer tokenizer) {
  switch (tokenizer) {
    case BleuTokenizer::k13a:
      return "13a";
    case BleuTokenizer::kIntl:
      return "intl";
    case BleuTokenizer::kChar:
      return "char";
    case BleuTokenizer::kNone:
      return "none";
  }
  fail("bleu: unknown tokenizer number ", int(tokenizer));
}

BleuTokenizer parse_bleu_tokenizer(std::string_view name) {
  for (const BleuTokenizer tokenizer :
       {BleuTokenizer::k13a, BleuTokenizer::kIntl, BleuTokenizer::kChar, BleuTokenizer::kNone})
    if (name == to_string(tokenizer)) return tokenizer;
  fail("bleu: got tokenizer '", name, "', expected 13a, intl, char or none");
}

}  // namespace fathom::score
