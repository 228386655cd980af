// The part of a store's flat buffers that this process works on: all of it, or the ranges that this
// rank owns. A buffer for that part alone is compact: it has the ranges one after the other.
//
//   int64_t at = 0;  // in a compact buffer
//   for (const Slice& range : slices.ranges()) { ...; at += range.count; }
#pragma once

#include <vector>

#include "core/autograd/parameter.h"
#include "core/base/slice.h"

namespace fathom::autograd {

class ParameterSlices {
 public:
  // The store outlives this.
  explicit ParameterSlices(const ParameterStore& store);  // all of it
  // InvalidArgument unless the ranges ascend, are disjoint and split no chunk.
  ParameterSlices(const ParameterStore& store, std::vector<Slice> ranges);

  [[nodiscard]] const ParameterStore& store() const { return *store_; }
  [[nodiscard]] const std::vector<Slice>& ranges() const { return ranges_; }
  [[nodiscard]] int64_t size() const;  // elements of all ranges

  // The store's rows for the chunks within, (n, 3) i32: in the store's order when that is all of
  // them, else in the order of the buffer.
  [[nodiscard]] const Tensor& chunks() const { return chunks_; }
  // The rows of range r alone, with first elements counted from the range's begin; rows_of(r) says
  // which rows of chunks() they are.
  [[nodiscard]] Tensor chunks_of(size_t r) const {
    return relative_.row_range(rows_[r].offset, rows_[r].count);
  }
  [[nodiscard]] Slice rows_of(size_t r) const { return rows_[r]; }

  // The masters of range r, (1, count). Where the store keeps those of slices alone, they are of
  // these ones.
  [[nodiscard]] Tensor masters_of(size_t r) const;
  // chunks() with first elements counted in the store's weights().
  [[nodiscard]] const Tensor& master_chunks() const {
    return store_->has_whole_masters() ? chunks_ : compact_;
  }

 private:
  const ParameterStore* store_;
  std::vector<Slice> ranges_;
  std::vector<int64_t> begins_;  // of each range in a compact buffer
  std::vector<Slice> rows_;      // by range
  Tensor chunks_, relative_, compact_;
};

}  // namespace fathom::autograd
