#include "launcher/config/value.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/text.h"

namespace fathom::launcher {
namespace {

// All of a plain scalar; a quoted one is text.
template <class T>
std::optional<T> parse_plain(const YamlNode& node) {
  if (!node.is_scalar() || node.quoted) return std::nullopt;
  std::string_view text = node.text;
  // YAML allows `+5`; std::from_chars does not.
  const bool has_plus = text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+';
  if (has_plus) text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool are_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// 1_000 becomes 1000. False: an underscore that does not stand between thousands.
bool join_thousands(std::string& digits) {
  if (digits.find('_') == digits.npos) return true;
  if (digits[0] == '_') return false;
  std::string joined;
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool is_between = (digits.size() - i) % 4 == 0;
    if ((digits[i] == '_') != is_between) return false;
    if (!is_between) joined += digits[i];
  }
  digits = joined;
  return true;
}

// Turns 1e3, 2.5e3 and 1_000 into plain digits. False: it is no whole number, or has a leading
// zero. A point needs an exponent: 256.0 is a number, not an integer.
bool write_out(std::string& text) {
  constexpr int kMostZeros = 20;  // more is no int64
  const size_t begin = text.find_first_not_of("+-");
  if (begin == text.npos) return false;
  const size_t e = std::min(text.find_first_of("eE"), text.size());
  std::string whole = text.substr(begin, e - begin), fraction;
  const size_t point = whole.find('.');
  if (point != whole.npos) {
    fraction = whole.substr(point + 1);
    whole.resize(point);
    if (e == text.size() || !are_digits(fraction)) return false;
  }
  if (!join_thousands(whole) || !are_digits(whole)) return false;
  if (whole.size() > 1 && whole[0] == '0') return false;
  int zeros = 0;
  if (e < text.size()) {
    std::string_view exponent = std::string_view(text).substr(e + 1);
    if (exponent.starts_with('+')) exponent.remove_prefix(1);
    if (!are_digits(exponent) || exponent.size() > 2) return false;
    std::from_chars(exponent.data(), exponent.data() + exponent.size(), zeros);
    zeros -= int(fraction.size());
    if (zeros < 0 || zeros > kMostZeros) return false;
  }
  const std::string sign = text.substr(0, begin);
  text = sign + (whole == "0" && !fraction.empty() ? "" : whole) + fraction +
         std::string(size_t(zeros), '0');
  return true;
}

std::optional<double> parse_number(const YamlNode& node, const Interval& range) {
  const auto value = parse_plain<double>(node);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  const bool is_above = range.open_low ? *value > range.low : *value >= range.low;
  const bool is_below = range.open_high ? *value < range.high : *value <= range.high;
  if (!is_above || !is_below) return std::nullopt;
  return *value == 0 ? 0.0 : *value;  // -0 would print apart from 0
}

std::string format_number(double value) {
  const double size = std::abs(value);
  const bool fixed = size == 0 || (size >= 1e-5 && size < 1e15);
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 fixed ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer.data(), end.ptr);
  if (const size_t e = text.find('e'); e != text.npos && text.find('.') == text.npos)
    text.insert(e, ".0");
  return text;
}

// " in [0, 1)", " >= 0", or nothing.
std::string text_of(const Interval& range) {
  if (std::isinf(range.low)) return "";
  if (std::isinf(range.high)) return " >= " + format_number(range.low);
  return fmt::format(" in {}{}, {}{}", range.open_low ? '(' : '[', format_number(range.low),
                     format_number(range.high), range.open_high ? ')' : ']');
}

}  // namespace

Grammar<int64_t> integer(int64_t low, int64_t high) {
  const auto parse = [=](const YamlNode& node) -> std::optional<int64_t> {
    YamlNode digits = node;
    if (!node.is_scalar() || !write_out(digits.text)) return std::nullopt;
    const auto value = parse_plain<int64_t>(digits);
    return value && *value >= low && *value <= high ? value : std::nullopt;
  };
  return {"integer", fmt::format("integer in [{}, {}]", low, high), parse,
          [](int64_t value) { return std::to_string(value); }};
}

Grammar<double> number(const Interval& range) {
  const auto parse = [range](const YamlNode& node) { return parse_number(node, range); };
  return {"number", "number" + text_of(range), parse, format_number};
}

Grammar<std::optional<double>> number_or_auto(const Interval& range) {
  using Maybe = std::optional<double>;
  const auto parse = [range](const YamlNode& node) -> std::optional<Maybe> {
    if (node.is_scalar() && node.text == "auto") return Maybe();
    const Maybe value = parse_number(node, range);
    return value ? std::optional<Maybe>(value) : std::nullopt;
  };
  return {"number", "auto, or number" + text_of(range), parse,
          [](const Maybe& value) { return value ? format_number(*value) : "auto"; }};
}

Grammar<std::array<double, 2>> two_numbers(const Interval& range) {
  using Two = std::array<double, 2>;
  const auto parse = [range](const YamlNode& node) -> std::optional<Two> {
    if (node.kind != YamlNode::Kind::kList || node.items.size() != 2) return std::nullopt;
    const auto first = parse_number(node.items[0], range),
               second = parse_number(node.items[1], range);
    return first && second ? std::optional(Two{*first, *second}) : std::nullopt;
  };
  return {"list", "two numbers" + text_of(range), parse, [](const Two& value) {
            return fmt::format("[{}, {}]", format_number(value[0]), format_number(value[1]));
          }};
}

Grammar<bool> boolean() {
  const auto parse = [](const YamlNode& node) -> std::optional<bool> {
    const bool is_plain = node.is_scalar() && !node.quoted;
    if (!is_plain || (node.text != "true" && node.text != "false")) return std::nullopt;
    return node.text == "true";
  };
  return {"boolean", "true or false", parse, [](bool value) { return value ? "true" : "false"; }};
}

Grammar<std::string> text(const std::string& allowed, bool (*accepts)(const std::string&)) {
  const auto parse = [accepts](const YamlNode& node) {
    const bool is_clean = node.is_scalar() && find_unprintable(node.text) == node.text.npos;
    return is_clean && accepts(node.text) ? std::optional(node.text) : std::nullopt;
  };
  return {"text", allowed, parse, quote_yaml};
}

std::string one_of(const std::vector<std::string>& words) {
  return fmt::format("one of {}", fmt::join(words, ", "));
}

}  // namespace fathom::launcher
