#include "dist/bucket_ledger.h"

#include <algorithm>

#include "core/base/error.h"

namespace fathom::dist {

BucketLedger::BucketLedger(int64_t parameter_count, int64_t bucket_length)
    : parameter_count_(parameter_count), bucket_length_(bucket_length) {
  require(parameter_count >= 1 && bucket_length >= 1, "buckets: got ", parameter_count,
          " parameters in buckets of ", bucket_length, ", expected at least 1 of each");
  missing_.resize(size_t((parameter_count - 1) / bucket_length + 1));
  clear();
}

Slice BucketLedger::slice(int64_t bucket) const {
  const int64_t offset = bucket * bucket_length_;
  return {.offset = offset, .count = std::min(bucket_length_, parameter_count_ - offset)};
}

std::vector<int64_t> BucketLedger::mark(int64_t offset, int64_t count) {
  require(offset >= 0 && count >= 0 && count <= parameter_count_ - offset,
          "gradient ready: range [", offset, ", ", offset + count, ") leaves the buffer of ",
          parameter_count_, " elements");
  if (count == 0) return {};
  const auto after = final_.lower_bound(offset);
  const bool meets_after = after != final_.end() && after->first < offset + count;
  const bool meets_before = after != final_.begin() && std::prev(after)->second > offset;
  require(!meets_after && !meets_before, "gradient ready: range [", offset, ", ", offset + count,
          ") was announced before in this step; each parameter is final once");
  final_.emplace_hint(after, offset, offset + count);

  std::vector<int64_t> completed;
  for (int64_t b = offset / bucket_length_; b <= (offset + count - 1) / bucket_length_; ++b) {
    const Slice s = slice(b);
    const int64_t begin = std::max(offset, s.offset);
    const int64_t end = std::min(offset + count, s.offset + s.count);
    missing_[size_t(b)] -= end - begin;
    if (missing_[size_t(b)] == 0) completed.push_back(b);
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
  for (int64_t b = 0; b < bucket_count(); ++b) missing_[size_t(b)] = slice(b).count;
}

}  // namespace fathom::dist
