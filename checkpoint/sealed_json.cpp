#include "checkpoint/sealed_json.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/hash.h"

namespace fathom::checkpoint {
namespace {

constexpr size_t kHashDigits = 32;

// As it stands before the digits.
std::string text_of(const std::string& key) { return join("\"", key, "\": \""); }

// to_chars and from_chars, since printf and strtod follow the locale.
std::string hex_double(double v) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, std::abs(v), std::chars_format::hex).ptr;
  return join(std::signbit(v) ? "-" : "", std::isfinite(v) ? "0x" : "", std::string(text, end));
}

double parse_hex_double(const std::string& text) {
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  double v = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, v, std::chars_format::hex);
  require(error == std::errc{} && stop == end && !digits.starts_with('-'), "'", text,
          "' is not a hexadecimal floating-point number");
  return negative ? -v : v;
}

}  // namespace

std::string seal(Json root, const std::string& key) {
  root[key] = std::string(kHashDigits, '0');
  std::string text = root.dump(1) + "\n";
  const size_t at = text.rfind(text_of(key));
  require(text.find(text_of(key)) == at, "no other member may be called ", key);
  text.replace(at + text_of(key).size(), kHashDigits, xxh3_128(text));
  return text;
}

void check_seal(std::string text, const std::string& key) {
  const std::string before = text_of(key);
  const size_t found = text.rfind(before);
  require(found != std::string::npos && text.find(before) == found &&
              found + before.size() + kHashDigits < text.size(),
          key, " is missing or appears twice");
  const size_t at = found + before.size();
  const std::string stored = text.substr(at, kHashDigits);
  text.replace(at, kHashDigits, kHashDigits, '0');
  const std::string actual = xxh3_128(text);
  require(stored == actual, "its own hash is ", actual, ", it says ", stored);
}

Json exact_json(double v) { return Json{{"f64", hex_double(v)}}; }

double parse_exact(const Json& j, const std::string& place) {
  ObjectReader members(j, place);
  const double v = parse_hex_double(members.text("f64"));
  members.finish();
  return v;
}

std::string hash_of(ObjectReader& members, const std::string& key) {
  std::string hash = members.text(key);
  require(
      hash.size() == kHashDigits && hash.find_first_not_of("0123456789abcdef") == std::string::npos,
      members.place(), ": '", key, "' is not 32 lower-case hexadecimal digits");
  return hash;
}

Json metric_json(const std::optional<Metric>& metric) {
  if (!metric) return nullptr;
  require(std::isfinite(metric->value), "metric ", metric->name, " is ", metric->value);
  return {{"name", metric->name},
          {"value", metric->value},
          {"better", metric->better == Better::kLower ? "lower" : "higher"}};
}

std::optional<Metric> parse_metric(const Json& j) {
  if (j.is_null()) return std::nullopt;
  ObjectReader members(j, "metric");
  Metric metric;
  metric.name = members.text("name");
  const Json& value = members.take("value");
  require(value.is_number(), "metric: 'value' is not a number");
  metric.value = value.get<double>();
  const std::string better = members.text("better");
  require(better == "lower" || better == "higher", "metric: 'better' is '", better,
          "', not lower or higher");
  metric.better = better == "lower" ? Better::kLower : Better::kHigher;
  members.finish();
  return metric;
}

}  // namespace fathom::checkpoint
