#include "dist/slice_gather.h"

#include <cstdint>
#include <vector>

#include "core/base/error.h"

namespace fathom::dist {

SliceGather::SliceGather(Communicator& group, Context& context, const Ownership& ownership,
                         DType dtype)
    : ownership_(ownership),
      context_(context),
      dtype_(dtype),
      communicator_(group.duplicate()),
      data_(make_data_group(*communicator_, context.device())) {
  require(ownership.ranks() == group.size(), "slice gather: ownership of ", ownership.ranks(),
          " ranks in a group of ", group.size());
  std::vector<int32_t> order;
  for (int r = 0; r < group.size(); ++r) {
    const std::vector<int64_t>& chunks = ownership.chunks_of(r);
    chunk_counts_.push_back(int64_t(chunks.size()));
    order.insert(order.end(), chunks.begin(), chunks.end());
  }
  const int64_t n = int64_t(order.size());
  if (n == 0) return;
  rows_ = context_.allocate(1, 2 * n, DType::kF64);
  order_ = context_.allocate(1, n, DType::kI32);
  context_.upload(order_, std::span<const int32_t>(order));
}

void SliceGather::gather(const Tensor& flat) {
  require(flat.numel() == ownership_.count(), "slice gather: got ", flat, ", expected ",
          ownership_.count(), " elements");
  if (part_.numel() == 0)
    part_ = context_.allocate(1, ownership_.longest_part(data_->rank()), dtype_);
  for (int64_t b = 0; b < ownership_.bucket_count(); ++b) {
    const Slice bucket = ownership_.bucket(b), own = ownership_.part(b, data_->rank());
    const Tensor mine = part_.columns(0, own.count);
    context_.copy(mine, flat.columns(own.offset, own.count));
    data_->all_gather(context_, mine, ownership_.counts(b),
                      flat.columns(bucket.offset, bucket.count));
  }
}

void SliceGather::gather(const Tensor& compact, const Tensor& flat) {
  require(flat.numel() == ownership_.count() &&
              compact.numel() == ownership_.owned_count(data_->rank()),
          "slice gather: got ", compact, " of ", flat, ", expected ",
          ownership_.owned_count(data_->rank()), " elements of ", ownership_.count());
  int64_t at = 0;
  for (int64_t b = 0; b < ownership_.bucket_count(); ++b) {
    const Slice bucket = ownership_.bucket(b);
    if (bucket.count == 0) continue;
    const int64_t own = ownership_.part(b, data_->rank()).count;
    data_->all_gather(context_, compact.columns(at, own), ownership_.counts(b),
                      flat.columns(bucket.offset, bucket.count));
    at += own;
  }
}

void SliceGather::gather_chunks(const Tensor& own, const Tensor& all) {
  const int64_t width = own.cols();
  require(width <= 2 && all.cols() == width && all.rows() == order_.cols(),
          "slice gather: rows of ", own, " into ", all, " of ", order_.cols(), " chunks");
  const Tensor in_rank_order = rows_.columns(0, all.numel()).reshaped(all.rows(), width);
  std::vector<int64_t> counts = chunk_counts_;
  for (int64_t& count : counts) count *= width;
  data_->all_gather(context_, own, counts, in_rank_order);
  context_.run(&kernels::Kernels::append_rows, {.from = in_rank_order, .to = all, .index = order_});
}

void SliceGather::gather_to_host(const Tensor& compact, std::span<std::byte> flat) {
  if (bucket_.numel() == 0) bucket_ = context_.allocate(1, ownership_.longest_bucket(), dtype_);
  int64_t at = 0;
  for (int64_t b = 0; b < ownership_.bucket_count(); ++b) {
    const Slice bucket = ownership_.bucket(b);
    const int64_t own = ownership_.part(b, data_->rank()).count;
    const Tensor all = bucket_.columns(0, bucket.count);
    data_->all_gather(context_, compact.columns(at, own), ownership_.counts(b), all);
    at += own;
    if (!flat.empty())
      context_.download_later(
          flat.subspan(size_t(bucket.offset * size_of(dtype_)), size_t(all.bytes())), all);
  }
}

}  // namespace fathom::dist
