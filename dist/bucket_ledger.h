// Which gradients of one step are final, and which buckets that completes. Buckets are consecutive
// slices of the flat buffer of equal length; the last one may be shorter.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace fathom::dist {

struct Slice {
  int64_t offset = 0;
  int64_t count = 0;
};

class BucketLedger {
 public:
  BucketLedger(int64_t parameter_count, int64_t bucket_length);

  [[nodiscard]] int64_t bucket_count() const { return int64_t(missing_.size()); }
  [[nodiscard]] Slice slice(int64_t bucket) const;

  // Elements [offset, offset + count) are final. Returns the buckets this completes, ascending.
  // InvalidArgument if the range leaves the buffer or was marked before.
  std::vector<int64_t> mark(int64_t offset, int64_t count);

  // Everything not marked yet is final. Returns the buckets this completes, ascending.
  std::vector<int64_t> mark_rest();

  void clear();  // for the next step

 private:
  int64_t parameter_count_;
  int64_t bucket_length_;
  std::vector<int64_t> missing_;           // per bucket: elements not yet final
  std::map<int64_t, int64_t> final_ = {};  // begin to end of every marked range
};

}  // namespace fathom::dist
