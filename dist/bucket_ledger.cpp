#include "dist/bucket_ledger.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/base/error.h"

namespace fathom::dist {

BucketLedger::BucketLedger(std::vector<int64_t> boundaries) : boundaries_(std::move(boundaries)) {
  require(boundaries_.size() >= 2 && boundaries_.front() == 0 &&
              std::ranges::adjacent_find(boundaries_, std::greater_equal<>()) == boundaries_.end(),
          "buckets: ", boundaries_.size(), " boundaries, expected at least 2, ascending from 0");
  missing_.resize(boundaries_.size() - 1);
  clear();
}

std::vector<int64_t> BucketLedger::mark(int64_t offset, int64_t count) {
  require(offset >= 0 && count >= 0 && count <= boundaries_.back() - offset,
          "gradient ready: range [", offset, ", ", offset + count, ") leaves the buffer of ",
          boundaries_.back(), " elements");
  if (count == 0) return {};
  const auto after = final_.lower_bound(offset);
  const bool meets_after = after != final_.end() && after->first < offset + count;
  const bool meets_before = after != final_.begin() && std::prev(after)->second > offset;
  require(!meets_after && !meets_before, "gradient ready: range [", offset, ", ", offset + count,
          ") was marked final before in this step; each parameter is final once");
  final_.emplace_hint(after, offset, offset + count);

  std::vector<int64_t> completed;
  size_t b = size_t(std::ranges::upper_bound(boundaries_, offset) - boundaries_.begin()) - 1;
  for (; b < missing_.size() && boundaries_[b] < offset + count; ++b) {
    const int64_t begin = std::max(offset, boundaries_[b]);
    const int64_t end = std::min(offset + count, boundaries_[b + 1]);
    missing_[b] -= end - begin;
    if (missing_[b] == 0) completed.push_back(int64_t(b));
  }
  return completed;
}

std::vector<int64_t> BucketLedger::mark_rest() {
  std::vector<int64_t> completed;
  for (int64_t b = 0; b < bucket_count(); ++b) {
    if (missing_[size_t(b)] == 0) continue;
    missing_[size_t(b)] = 0;
    completed.push_back(b);
  }
  return completed;
}

void BucketLedger::clear() {
  final_.clear();
  for (size_t b = 0; b < missing_.size(); ++b) missing_[b] = boundaries_[b + 1] - boundaries_[b];
}

}  // namespace fathom::dist
