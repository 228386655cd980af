// A small JSON value with ordered keys, for the records of a run. Equal values give equal bytes: a
// double has the fewest digits that read back to it. JSON has no NaN and no infinity, so they
// become the strings "NaN", "Infinity" and "-Infinity".
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fathom::monitoring {

class Value;
using Field = std::pair<std::string, Value>;
using Object = std::vector<Field>;  // {{"step", 3}, {"loss", 1.5}}, in this order
using Array = std::vector<Value>;

class Value {
 public:
  // Implicit, so that {"step", 3} is a field. A pointer is not a bool.
  // NOLINTBEGIN(google-explicit-constructor)
  Value(std::same_as<bool> auto b) : data_(b) {}
  Value(std::floating_point auto x) : data_(double(x)) {}
  Value(std::integral auto n) requires(!std::same_as<decltype(n), bool>) : data_(int64_t(n)) {}
  Value(std::string text) : data_(std::move(text)) {}
  Value(std::string_view text) : data_(std::string(text)) {}
  Value(const char* text) : data_(std::string(text)) {}
  Value(Object fields) : data_(std::move(fields)) {}
  Value(Array values) : data_(std::move(values)) {}
  // NOLINTEND(google-explicit-constructor)

  using Data = std::variant<bool, double, int64_t, std::string, Object, Array>;
  [[nodiscard]] const Data& data() const { return data_; }

 private:
  Data data_;
};

// On one line, without spaces. Bytes of text that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string to_json(const Value& value);

// The text with each byte sequence that is not UTF-8 replaced by U+FFFD.
[[nodiscard]] std::string valid_utf8(const std::string& text);

}  // namespace fathom::monitoring
