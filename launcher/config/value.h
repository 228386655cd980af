// The grammar of each type of value: what is allowed, how it is read, and how it is written back,
// the same in every locale.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/config/yaml.h"

namespace fathom::launcher {

template <class T>
struct Grammar {
  std::string type = {};
  std::string allowed = {};
  std::function<std::optional<T>(const YamlNode&)> parse = {};  // nothing: it is not allowed
  std::function<std::string(const T&)> format = {};  // YAML that reads back to the same value
  std::vector<std::string> words = {};               // of a choice
};

// Decimal digits with a sign; no leading zero (YAML 1.1 reads it as octal), no fraction. 1_000, 1e3
// and 2.5e3 are integers too.
[[nodiscard]] Grammar<int64_t> integer(int64_t low, int64_t high);

// A finite decimal number: no `nan`, `inf`, `1e400` or hexadecimal. Written with a point where YAML
// 1.1 readers need one, else as short as can be: 0.0005, 256, 1.0e-07.
struct Interval {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open_low = false;
  bool open_high = false;
};
[[nodiscard]] Grammar<double> number(const Interval& range);
// Such a number, or the word auto, which is none.
[[nodiscard]] Grammar<std::optional<double>> number_or_auto(const Interval& range);
[[nodiscard]] Grammar<std::array<double, 2>> two_numbers(const Interval& range);

// `true` or `false`, as YAML 1.2 has them; `yes` and `on` are text.
[[nodiscard]] Grammar<bool> boolean();

// Printable UTF-8.
[[nodiscard]] Grammar<std::string> text(const std::string& allowed,
                                        bool (*accepts)(const std::string&));

// "one of a, b, c"
[[nodiscard]] std::string one_of(const std::vector<std::string>& words);

template <class T>
[[nodiscard]] Grammar<T> choice(const std::vector<std::pair<std::string, T>>& values) {
  Grammar<T> out = {.type = "choice"};
  for (const auto& [word, value] : values) out.words.push_back(word);
  out.allowed = one_of(out.words);
  out.parse = [values](const YamlNode& node) -> std::optional<T> {
    for (const auto& [word, value] : values)
      if (node.is_scalar() && node.text == word) return value;
    return std::nullopt;
  };
  out.format = [values](const T& value) -> std::string {
    for (const auto& [word, known] : values)
      if (known == value) return quote_yaml(word);
    return "''";
  };
  return out;
}

}  // namespace fathom::launcher
