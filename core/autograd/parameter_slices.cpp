#include "core/autograd/parameter_slices.h"

#include <algorithm>

namespace fathom::autograd {
namespace {

void append(std::vector<int32_t>& rows, const kernels::Chunk& chunk, int64_t origin) {
  rows.push_back(int32_t((chunk.first - origin) / kernels::kChunkUnit));
  rows.push_back(int32_t(chunk.count));
  rows.push_back(int32_t(chunk.parameter));
}

Tensor upload(Context& context, const std::vector<int32_t>& rows) {
  Tensor out = context.allocate(int64_t(rows.size()) / 3, 3, DType::kI32);
  context.upload(out, std::span<const int32_t>(rows));
  return out;
}

}  // namespace

ParameterSlices::ParameterSlices(const ParameterStore& store)
    : store_(&store),
      ranges_({{.offset = 0, .count = store.size()}}),
      begins_({0}),
      rows_({{.offset = 0, .count = store.chunks().rows()}}),
      chunks_(store.chunks()),
      relative_(store.chunks()),
      compact_(store.chunks()) {}

ParameterSlices::ParameterSlices(const ParameterStore& store, std::vector<Slice> ranges)
    : store_(&store), ranges_(std::move(ranges)) {
  std::vector<kernels::Chunk> chunks = store.chunk_table();
  std::ranges::sort(chunks, {}, &kernels::Chunk::first);
  std::vector<int32_t> rows, relative, compact;
  auto next = chunks.begin();
  int64_t end = 0, begin = 0;
  for (const Slice& range : ranges_) {
    require(range.count > 0 && range.offset >= end && range.end() <= store.size(),
            "parameter slices: [", range.offset, ", ", range.end(), ") after ", end,
            ", expected ascending ranges of a buffer of ", store.size());
    end = range.end();
    while (next != chunks.end() && next->first + next->count <= range.offset) ++next;
    const int64_t first_row = int64_t(rows.size()) / 3;
    for (; next != chunks.end() && next->first < end; ++next) {
      require(next->first >= range.offset && next->first + next->count <= end,
              "parameter slices: [", range.offset, ", ", end, ") cuts the chunk of ", next->count,
              " elements at ", next->first);
      append(rows, *next, 0);
      append(relative, *next, range.offset);
      append(compact, *next, range.offset - begin);
    }
    begins_.push_back(begin);
    begin += range.count;
    rows_.push_back({.offset = first_row, .count = int64_t(rows.size()) / 3 - first_row});
  }
  Context& context = store.device().compute();
  chunks_ = upload(context, rows);
  relative_ = upload(context, relative);
  compact_ = upload(context, compact);
}

Tensor ParameterSlices::masters_of(size_t r) const {
  const int64_t begin = store_->has_whole_masters() ? ranges_[r].offset : begins_[r];
  return store_->weights().columns(begin, ranges_[r].count);
}

int64_t ParameterSlices::size() const {
  int64_t sum = 0;
  for (const Slice& range : ranges_) sum += range.count;
  return sum;
}

}  // namespace fathom::autograd
