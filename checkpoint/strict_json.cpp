#include "checkpoint/strict_json.h"

#include <utility>
#include <vector>

#include "core/base/error.h"

namespace fathom::checkpoint {
namespace {

constexpr int kMaxDepth = 32;

}  // namespace

Json parse_strictly(std::string_view text) {
  // nlohmann's parser keeps the last of two equal keys and has no limit on depth.
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxDepth) fail("nested deeper than ", kMaxDepth);
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      require(keys.back().insert(key).second, "key '", key, "' appears twice");
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::exception& e) {
    fail(e.what());
  }
}

ObjectReader::ObjectReader(const Json& object, std::string place)
    : object_(object), place_(std::move(place)) {
  require(object.is_object(), place_, " is not an object");
}

const Json& ObjectReader::take(const std::string& key) {
  const auto found = object_.find(key);
  require(found != object_.end(), place_, ": '", key, "' is missing");
  taken_.insert(key);
  return *found;
}

int64_t ObjectReader::integer(const std::string& key) {
  const Json& j = take(key);
  require(
      j.is_number_integer() && !(j.is_number_unsigned() && j.get<uint64_t>() > uint64_t(INT64_MAX)),
      place_, ": '", key, "' is not a 64-bit integer");
  return j.get<int64_t>();
}

int64_t ObjectReader::count(const std::string& key) {
  const int64_t v = integer(key);
  require(v >= 0, place_, ": '", key, "' is ", v, ", must not be negative");
  return v;
}

bool ObjectReader::boolean(const std::string& key) {
  const Json& j = take(key);
  require(j.is_boolean(), place_, ": '", key, "' is neither true nor false");
  return j.get<bool>();
}

std::string ObjectReader::text(const std::string& key) {
  const Json& j = take(key);
  require(j.is_string(), place_, ": '", key, "' is not a string");
  return j.get<std::string>();
}

void ObjectReader::finish() const {
  for (const auto& [key, value] : object_.items())
    require(taken_.contains(key), place_, ": unknown key '", key, "'");
}

}  // namespace fathom::checkpoint
