#include "launcher/config/scalar.h"

#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

namespace fathom::launcher {

namespace {

// YAML allows `+5`; std::from_chars does not.
std::string_view without_plus(std::string_view text) {
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+';
  return plus ? text.substr(1) : text;
}

template <class T>
std::optional<T> parse_all(std::string_view text) {
  text = without_plus(text);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> parse_integer(std::string_view text) {
  const size_t first = text.find_first_not_of("+-");
  if (first == text.npos || (text[first] == '0' && text.size() > first + 1)) return std::nullopt;
  return parse_all<int64_t>(text);
}

std::optional<double> parse_number(std::string_view text) {
  const auto value = parse_all<double>(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return *value == 0 ? 0.0 : *value;  // -0 would print apart from 0
}

std::optional<bool> parse_boolean(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
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

}  // namespace fathom::launcher
