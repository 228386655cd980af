#include "monitoring/json.h"

#include <charconv>
#include <cmath>

#include <nlohmann/json.hpp>

namespace fathom::monitoring {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Not nlohmann's digits: it writes 1e-04 as 0.0001 and some doubles with more digits than needed,
// and these bytes are compared between runs.
std::string number(double x) {
  if (std::isnan(x)) return R"("NaN")";
  if (std::isinf(x)) return x > 0 ? R"("Infinity")" : R"("-Infinity")";
  char digits[32];
  std::string text(digits, std::to_chars(digits, digits + sizeof digits, x).ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";  // stays a float for readers
  return text;
}

struct Writer {
  std::string& out;

  void operator()(bool b) const { out += b ? "true" : "false"; }
  void operator()(double x) const { out += number(x); }
  void operator()(int64_t n) const { out += std::to_string(n); }
  void operator()(const std::string& text) const { out += quoted(text); }
  void operator()(const Object& fields) const {
    out += '{';
    for (size_t i = 0; i < fields.size(); ++i) {
      if (i > 0) out += ',';
      out += quoted(fields[i].first) + ':';
      std::visit(*this, fields[i].second.data());
    }
    out += '}';
  }
  void operator()(const Array& values) const {
    out += '[';
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out += ',';
      std::visit(*this, values[i].data());
    }
    out += ']';
  }
};

}  // namespace

std::string to_json(const Value& value) {
  std::string out;
  std::visit(Writer{out}, value.data());
  return out;
}

std::string valid_utf8(const std::string& text) {
  return nlohmann::json::parse(quoted(text)).get<std::string>();
}

}  // namespace fathom::monitoring
