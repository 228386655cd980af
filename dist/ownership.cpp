#include "dist/ownership.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "core/base/error.h"

namespace fathom::dist {

Ownership::Ownership(std::span<const int64_t> chunks, int64_t count, int64_t bucket_length,
                     int ranks)
    : ranks_(ranks), chunks_of_(size_t(std::max(ranks, 0))) {
  require(ranks >= 1 && bucket_length >= 1, "ownership: got ", ranks, " ranks and buckets of ",
          bucket_length, " elements, expected at least 1 of each");
  std::vector<int64_t> order(chunks.size());  // indices in `chunks`, by first element
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int64_t k) { return chunks[size_t(k)]; });
  std::vector<int64_t> begins;
  for (const int64_t k : order) begins.push_back(chunks[size_t(k)]);
  begins.push_back(count);
  const bool is_table = std::ranges::adjacent_find(begins, std::greater_equal<>()) == begins.end();
  require(count >= 1 && begins.front() == 0 && is_table, "ownership: ", chunks.size(),
          " chunks, expected distinct ones from element 0 on of a buffer of ", count);

  cuts_.push_back(0);
  std::vector<int64_t> before(size_t(ranks), 0);  // what ranks below r own of earlier buckets
  for (size_t first = 0; first + 1 < begins.size();) {
    size_t last = first + 1;  // the bucket's chunks are [first, last)
    while (last + 1 < begins.size() && begins[last + 1] - begins[first] <= bucket_length) ++last;
    size_t next = first;  // the first chunk without an owner
    for (int r = 1; r <= ranks; ++r) {
      size_t cut = last;  // the end of what rank r - 1 gets
      if (r < ranks) {
        const int64_t even = begins[last] * r / ranks;
        const auto distance = [&](size_t k) {
          return std::abs(before[size_t(r)] + begins[k] - begins[first] - even);
        };
        cut = next;
        while (cut < last && distance(cut + 1) <= distance(cut)) ++cut;
        before[size_t(r)] += begins[cut] - begins[first];
      }
      for (; next < cut; ++next) chunks_of_[size_t(r - 1)].push_back(order[next]);
      cuts_.push_back(begins[cut]);
    }
    first = last;
  }
}

Slice Ownership::bucket(int64_t bucket) const {
  const int64_t begin = cuts_[size_t(bucket * ranks_)], end = cuts_[size_t((bucket + 1) * ranks_)];
  return {.offset = begin, .count = end - begin};
}

Slice Ownership::part(int64_t bucket, int rank) const {
  const size_t k = size_t(bucket * ranks_ + rank);
  return {.offset = cuts_[k], .count = cuts_[k + 1] - cuts_[k]};
}

std::vector<int64_t> Ownership::counts(int64_t bucket) const {
  std::vector<int64_t> counts;
  for (int r = 0; r < ranks_; ++r) counts.push_back(part(bucket, r).count);
  return counts;
}

int64_t Ownership::longest_bucket() const {
  int64_t longest = 0;
  for (int64_t b = 0; b < bucket_count(); ++b) longest = std::max(longest, bucket(b).count);
  return longest;
}

int64_t Ownership::longest_part(int rank) const {
  int64_t longest = 0;
  for (int64_t b = 0; b < bucket_count(); ++b) longest = std::max(longest, part(b, rank).count);
  return longest;
}

std::vector<Slice> Ownership::ranges(int rank) const {
  std::vector<Slice> ranges;
  for (int64_t b = 0; b < bucket_count(); ++b) {
    const Slice own = part(b, rank);
    if (own.count == 0) continue;
    if (!ranges.empty() && ranges.back().end() == own.offset)
      ranges.back().count += own.count;
    else
      ranges.push_back(own);
  }
  return ranges;
}

int64_t Ownership::owned_count(int rank) const {
  int64_t sum = 0;
  for (int64_t b = 0; b < bucket_count(); ++b) sum += part(b, rank).count;
  return sum;
}

Ownership Ownership::of_elements(const std::function<int64_t(int64_t)>& position) const {
  Ownership mapped = *this;
  for (int64_t& cut : mapped.cuts_) cut = position(cut);
  for (std::vector<int64_t>& chunks : mapped.chunks_of_) chunks.clear();
  return mapped;
}

}  // namespace fathom::dist
