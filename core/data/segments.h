// Where the sentences of a packed batch are, on the host: one after the other, without gaps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace fathom::data {

struct Segments {
  std::vector<int32_t> begin;   // (S)  first row
  std::vector<int32_t> length;  // (S)  rows
  int64_t total = 0;            // rows of the matrix, T

  [[nodiscard]] int64_t count() const { return int64_t(length.size()); }
  [[nodiscard]] int32_t longest() const {
    return length.empty() ? 0 : *std::max_element(length.begin(), length.end());
  }

  [[nodiscard]] static Segments from_lengths(std::span<const int32_t> lengths) {
    Segments s;
    s.begin.reserve(lengths.size());
    s.length.assign(lengths.begin(), lengths.end());
    for (const int32_t n : lengths) {
      s.begin.push_back(int32_t(s.total));
      s.total += n;
    }
    return s;
  }

  bool operator==(const Segments&) const = default;
};

}  // namespace fathom::data
