// Makes a Key from a name, a meaning, a field and a range. Internal to schema_*.cpp. A field is a
// generic lambda from Config to a reference, so that one serves both reading and writing.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "launcher/config/scalar.h"
#include "launcher/config/schema.h"

namespace fathom::launcher {

inline constexpr int64_t kMostSteps = 1'000'000'000;

struct Interval {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open_low = false;
  bool open_high = false;

  [[nodiscard]] bool contains(double x) const {
    return (open_low ? x > low : x >= low) && (open_high ? x < high : x <= high);
  }
  [[nodiscard]] std::string text() const;  // " in [0, 1)", " > 0", or nothing
};

struct TextRule {
  std::string allowed;
  bool (*accepts)(const std::string&);
};
[[nodiscard]] bool accepts_name(const std::string& text);  // [A-Za-z0-9._-]{1,64}, no dot in front
[[nodiscard]] bool accepts_path(const std::string& text);  // not empty
[[nodiscard]] bool accepts_any(const std::string& text);

[[nodiscard]] inline bool is_plain(const YamlNode& node) {
  return node.kind == YamlNode::Kind::kScalar && !node.quoted;
}

template <class F>
using FieldType = std::remove_cvref_t<std::invoke_result_t<F, Config&>>;

template <class F>
Key integer_key(std::string name, F field, int64_t low, int64_t high, std::string meaning) {
  return {.name = std::move(name),
          .type = "integer",
          .allowed = join("integer in [", low, ", ", high, "]"),
          .meaning = std::move(meaning),
          .set =
              [=](Config& config, const YamlNode& node) {
                const auto value = is_plain(node) ? parse_integer(node.text) : std::nullopt;
                if (!value || *value < low || *value > high) return false;
                field(config) = static_cast<FieldType<F>>(*value);
                return true;
              },
          .get = [=](const Config& config) -> std::optional<std::string> {
            return std::to_string(field(config));
          }};
}

template <class F>
Key number_key(std::string name, F field, Interval range, std::string meaning) {
  return {.name = std::move(name),
          .type = "number",
          .allowed = "number" + range.text(),
          .meaning = std::move(meaning),
          .set =
              [=](Config& config, const YamlNode& node) {
                const auto value = is_plain(node) ? parse_number(node.text) : std::nullopt;
                if (!value || !range.contains(*value)) return false;
                field(config) = *value;
                return true;
              },
          .get = [=](const Config& config) -> std::optional<std::string> {
            return format_number(field(config));
          }};
}

template <class F>
Key boolean_key(std::string name, F field, std::string meaning) {
  return {.name = std::move(name),
          .type = "boolean",
          .allowed = "true or false",
          .meaning = std::move(meaning),
          .set =
              [=](Config& config, const YamlNode& node) {
                const auto value = is_plain(node) ? parse_boolean(node.text) : std::nullopt;
                if (!value) return false;
                field(config) = *value;
                return true;
              },
          .get = [=](const Config& config) -> std::optional<std::string> {
            return field(config) ? "true" : "false";
          }};
}

template <class F>
Key text_key(std::string name, F field, TextRule rule, std::string meaning) {
  return {.name = std::move(name),
          .type = "text",
          .allowed = rule.allowed,
          .meaning = std::move(meaning),
          .set =
              [=](Config& config, const YamlNode& node) {
                if (node.kind != YamlNode::Kind::kScalar) return false;
                if (!is_clean_text(node.text, Whitespace::kSpaceOnly)) return false;
                if (!rule.accepts(node.text)) return false;
                field(config) = node.text;
                return true;
              },
          .get = [=](const Config& config) -> std::optional<std::string> {
            return quote_yaml(field(config));
          }};
}

// A choice of named values of any type that compares equal.
template <class F>
Key choice_key(std::string name, F field, std::vector<std::pair<std::string, FieldType<F>>> values,
               std::string meaning) {
  Key key = {.name = std::move(name),
             .type = "choice",
             .allowed = "one of ",
             .meaning = std::move(meaning)};
  for (const auto& [word, value] : values) {
    key.allowed += (key.choices.empty() ? "" : ", ") + word;
    key.choices.push_back(word);
  }
  key.set = [=](Config& config, const YamlNode& node) {
    if (node.kind != YamlNode::Kind::kScalar) return false;
    for (const auto& [word, value] : values)
      if (word == node.text) {
        field(config) = value;
        return true;
      }
    return false;
  };
  key.get = [=](const Config& config) -> std::optional<std::string> {
    for (const auto& [word, value] : values)
      if (value == field(config)) return quote_yaml(word);
    return std::nullopt;
  };
  return key;
}

[[nodiscard]] inline Key without(Key key, std::string value, std::string reason) {
  key.not_available.push_back({.value = std::move(value), .reason = std::move(reason)});
  return key;
}

// Each appends its sections to the table.
void add_model_keys(std::vector<Key>& keys);     // run, model
void add_learning_keys(std::vector<Key>& keys);  // data, batch, optimizer
void add_running_keys(std::vector<Key>& keys);   // train, dist, checkpoint, monitoring, verdict

}  // namespace fathom::launcher
