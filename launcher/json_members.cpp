#include "launcher/json_members.h"

#include <nlohmann/json.hpp>

namespace fathom::launcher {
namespace {

nlohmann::json member(const std::string& text, const std::string& key) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.contains(key) ? json[key] : nlohmann::json();
}

}  // namespace

std::string text_member(const std::string& json, const std::string& key) {
  const nlohmann::json found = member(json, key);
  return found.is_string() ? found.get<std::string>() : "";
}

int64_t integer_member(const std::string& json, const std::string& key) {
  const nlohmann::json found = member(json, key);
  return found.is_number_integer() ? found.get<int64_t>() : 0;
}

bool flag_member(const std::string& json, const std::string& key) {
  const nlohmann::json found = member(json, key);
  return found.is_boolean() && found.get<bool>();
}

}  // namespace fathom::launcher
