// The names and shapes of manifest.h.
#include <algorithm>
#include <charconv>

#include "checkpoint/manifest.h"

namespace fathom::checkpoint {

std::string_view to_string(ElementType type) { return type == ElementType::kF32 ? "f32" : "f64"; }

int64_t element_bytes(ElementType type) { return type == ElementType::kF32 ? 4 : 8; }

int64_t ArrayInfo::bytes() const { return element_count(shape) * element_bytes(type); }

bool is_valid_name(std::string_view name) {
  if (name.empty() || name.size() > 512) return false;
  const auto is_word_character = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  while (true) {
    const std::string_view word = name.substr(0, name.find('/'));
    if (word.empty() || word == "." || word == ".." ||
        !std::all_of(word.begin(), word.end(), is_word_character))
      return false;
    if (word.size() == name.size()) return true;
    name.remove_prefix(word.size() + 1);
  }
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

int64_t element_count(std::span<const int64_t> shape) {
  constexpr int64_t kMax = int64_t{1} << 56;
  int64_t count = 1;
  for (const int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count) || count > kMax) return -1;
  return count;
}

std::string step_name(int64_t step) {
  const std::string digits = std::to_string(step);
  return "step-" + std::string(digits.size() < 8 ? 8 - digits.size() : 0, '0') + digits;
}

std::optional<int64_t> parse_step_name(std::string_view name) {
  if (!name.starts_with("step-")) return std::nullopt;
  int64_t step = -1;
  std::from_chars(name.data() + 5, name.data() + name.size(), step);
  if (step < 0 || step_name(step) != name) return std::nullopt;
  return step;
}

}  // namespace fathom::checkpoint
