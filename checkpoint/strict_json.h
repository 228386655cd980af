// JSON in which nothing is overlooked: no key twice, no deep nesting, every member of the type that
// is asked for, none unknown. Errors are InvalidArgument and name the place.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace fathom::checkpoint {

using Json = nlohmann::ordered_json;

// Nested at most 32 deep.
[[nodiscard]] Json parse_strictly(std::string_view text);

// Takes an object's members one by one; what is left at the end is unknown.
class ObjectReader {
 public:
  // `object` must outlive this reader; `place` names it in messages.
  ObjectReader(const Json& object, std::string place);

  [[nodiscard]] const std::string& place() const { return place_; }
  const Json& take(const std::string& key);
  int64_t integer(const std::string& key);
  int64_t count(const std::string& key);  // an integer from 0
  bool boolean(const std::string& key);
  std::string text(const std::string& key);

  // Refuses members that were not taken.
  void finish() const;

 private:
  const Json& object_;
  std::string place_;
  std::set<std::string> taken_;
};

}  // namespace fathom::checkpoint
