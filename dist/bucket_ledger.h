// Which gradients of one step are final, and which buckets that completes. Buckets are consecutive
// slices of the flat buffer.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace fathom::dist {

class BucketLedger {
 public:
  // Bucket b is [boundaries[b], boundaries[b + 1]); the first is 0, and they ascend.
  explicit BucketLedger(std::vector<int64_t> boundaries);

  [[nodiscard]] int64_t bucket_count() const { return int64_t(missing_.size()); }

  // Elements [offset, offset + count) are final. Returns the buckets this completes, ascending.
  // InvalidArgument if the range leaves the buffer or was marked before.
  std::vector<int64_t> mark(int64_t offset, int64_t count);

  // Everything not marked yet is final. Returns the buckets this completes, ascending.
  std::vector<int64_t> mark_rest();

  void clear();  // for the next step

 private:
  std::vector<int64_t> boundaries_;
  std::vector<int64_t> missing_;           // per bucket: elements not yet final
  std::map<int64_t, int64_t> final_ = {};  // begin to end of every marked range
};

}  // namespace fathom::dist
