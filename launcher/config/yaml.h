// A strict reader for the small part of YAML that a config needs: maps, lists and scalars, with the
// line of each. Refused, with place and reason: a duplicate key, an anchor, alias or tag, a second
// document, nesting past 32, more than 1 MiB, control characters, text that is not UTF-8.
// The only file that knows yaml-cpp is yaml.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::launcher {

inline constexpr size_t kMaxConfigBytes = size_t{1} << 20;
inline constexpr size_t kMaxYamlDepth = 32;

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  std::string text = {};             // of a scalar
  bool quoted = false;               // a quoted scalar is text, never a number
  std::string key = {};              // in a map: the name of this entry
  int line = 0;                      // of the key in a map, else of the value; counts from 1
  std::vector<YamlNode> items = {};  // of a list or map, in file order

  [[nodiscard]] bool is_scalar() const { return kind == Kind::kScalar; }
};

// Throws InvalidArgument, its message starting with "source:line: ". No document gives kNull.
[[nodiscard]] YamlNode read_yaml(std::string_view text, const std::string& source);

// A scalar as YAML that reads back to `text`: plain where every YAML reader takes it for text, else
// in single quotes.
[[nodiscard]] std::string quote_yaml(const std::string& text);

}  // namespace fathom::launcher
