// Which rank owns which part of the flat buffers: a pure function of the table of chunks (the units
// of sums over a buffer, core/kernels/statistics.h), the length of a bucket and the number of
// ranks. A bucket is a run of whole chunks, in the order of the buffer. In each bucket every rank
// owns a run of whole chunks, in rank order; it may own none. The boundaries balance what ranks own
// of the buffer up to the bucket's end, so that a rank with one chunk too many in a bucket gets
// fewer in the next.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/slice.h"

namespace fathom::dist {

class Ownership {
 public:
  // `chunks` has the first element of each chunk, in any order; each ends where the next one of the
  // buffer begins, the last at `count`. A bucket has up to `bucket_length` elements, or one chunk.
  Ownership(std::span<const int64_t> chunks, int64_t count, int64_t bucket_length, int ranks);

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] int64_t count() const { return cuts_.back(); }
  [[nodiscard]] int64_t bucket_count() const { return int64_t(cuts_.size() - 1) / ranks_; }
  [[nodiscard]] Slice bucket(int64_t bucket) const;
  [[nodiscard]] int64_t longest_bucket() const;

  // What the rank owns of the bucket, and how many elements each rank does.
  [[nodiscard]] Slice part(int64_t bucket, int rank) const;
  [[nodiscard]] std::vector<int64_t> counts(int64_t bucket) const;
  [[nodiscard]] int64_t longest_part(int rank) const;

  // Everything the rank owns, ascending; adjacent parts are one range.
  [[nodiscard]] std::vector<Slice> ranges(int rank) const;
  [[nodiscard]] int64_t owned_count(int rank) const;
  // The same owners in a buffer that has some of the elements: `position` says how many of them
  // come before an element. It knows no chunks.
  [[nodiscard]] Ownership of_elements(const std::function<int64_t(int64_t)>& position) const;

  // Its chunks by their indices in `chunks`, in the order of the buffer.
  [[nodiscard]] const std::vector<int64_t>& chunks_of(int rank) const {
    return chunks_of_[size_t(rank)];
  }

 private:
  int ranks_;
  std::vector<int64_t> cuts_;  // part r of bucket b is [cuts_[bN + r], cuts_[bN + r + 1])
  std::vector<std::vector<int64_t>> chunks_of_;
};

}  // namespace fathom::dist
