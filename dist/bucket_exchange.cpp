#include "dist/bucket_exchange.h"

#include "core/base/error.h"

namespace fathom::dist {

BucketExchange::BucketExchange(DataGroup& group, Context& context, int shards, int64_t longest,
                               DType dtype)
    : group_(group), context_(context), shards_(shards) {
  const int size = group.size();
  int64_t most = 0;
  for (int r = 0; r < size; ++r) {
    subtrees_.push_back(maximal_subtrees(shard_range(r, size, shards), shards));
    most += int64_t(subtrees_.back().size());
  }
  if (size == 1) return;
  const int64_t segment = longest / size + 1;
  receive_ = context.allocate(1, most * segment, dtype);
  const int64_t own = int64_t(subtrees_[size_t(group.rank())].size());
  if (own > 1) send_ = context.allocate(1, own * longest, dtype);
}

void BucketExchange::reduce(std::span<const Tensor> partials) {
  const int rank = group_.rank(), size = group_.size();
  const int64_t own = int64_t(subtrees_[size_t(rank)].size());
  require(int64_t(partials.size()) == own, "bucket exchange: got ", partials.size(),
          " partial sums, expected ", own);
  if (size == 1) return;  // the only partial is the root

  const int64_t n = partials[0].numel();
  const auto boundary = [&](int r) { return n * r / size; };
  const int64_t length = boundary(rank + 1) - boundary(rank);
  std::vector<int64_t> segments;
  std::vector<int64_t> send_counts;
  std::vector<int64_t> receive_counts;
  int64_t received = 0;
  for (int r = 0; r < size; ++r) {
    segments.push_back(boundary(r + 1) - boundary(r));
    send_counts.push_back(own * segments.back());
    receive_counts.push_back(int64_t(subtrees_[size_t(r)].size()) * length);
    received += receive_counts.back();
  }

  Tensor send = partials[0];  // one partial is already cut by destination
  if (own > 1) {
    int64_t at = 0;
    for (int r = 0; r < size; ++r) {
      for (const Tensor& partial : partials) {
        context_.copy(send_.columns(at, segments[size_t(r)]),
                      partial.columns(boundary(r), segments[size_t(r)]));
        at += segments[size_t(r)];
      }
    }
    send = send_.columns(0, at);
  }
  group_.all_to_all(context_, send, send_counts, receive_.columns(0, received), receive_counts);
  sum_in_tree_order(length);
  group_.all_gather(context_, receive_.columns(0, length), segments, partials[0]);
}

// The root of the received partials ends in the first `length` elements.
void BucketExchange::sum_in_tree_order(int64_t length) {
  TreeStack stack(shards_);
  std::vector<int64_t> sums;  // where each begins
  int64_t next = 0;
  for (const std::vector<TreeNode>& nodes : subtrees_) {
    for (const TreeNode node : nodes) {
      sums.push_back(next);
      next += length;
      for (int merges = stack.push(node); merges > 0; --merges) {
        const Tensor right = receive_.columns(sums.back(), length);
        sums.pop_back();
        const Tensor left = receive_.columns(sums.back(), length);
        context_.run(&kernels::Kernels::add_scaled, {.x = left, .z = right, .y = left});
      }
    }
  }
}

}  // namespace fathom::dist
