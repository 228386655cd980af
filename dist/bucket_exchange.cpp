#include "dist/bucket_exchange.h"

#include "core/base/error.h"

namespace fathom::dist {
namespace {

struct Staging {
  int64_t receive = 0, send = 0;  // elements
};

Staging staging_of(const Ownership& ownership, int shards, int rank) {
  const int size = ownership.ranks();
  const auto partials = [&](int r) {
    return int64_t(maximal_subtrees(shard_range(r, size, shards), shards).size());
  };
  if (size == 1) return {};
  int64_t all = 0;
  for (int r = 0; r < size; ++r) all += partials(r);
  const int64_t own = partials(rank);
  return {.receive = all * ownership.longest_part(rank),
          .send = own > 1 ? own * ownership.longest_bucket() : 0};
}

}  // namespace

BucketExchange::BucketExchange(DataGroup& group, Context& context, const Ownership& ownership,
                               int shards, DType dtype)
    : group_(group), context_(context), ownership_(ownership), shards_(shards) {
  for (int r = 0; r < group.size(); ++r)
    subtrees_.push_back(maximal_subtrees(shard_range(r, group.size(), shards), shards));
  if (group.size() == 1) return;
  const Staging staging = staging_of(ownership, shards, group.rank());
  receive_ = context.allocate(1, staging.receive, dtype);
  if (staging.send > 0) send_ = context.allocate(1, staging.send, dtype);
}

int64_t BucketExchange::staged_count(const Ownership& ownership, int shards, int rank) {
  const Staging staging = staging_of(ownership, shards, rank);
  return staging.send + staging.receive;
}

void BucketExchange::reduce(int64_t bucket, std::span<const Tensor> partials, bool gathers) {
  const int rank = group_.rank(), size = group_.size();
  const int64_t own = int64_t(subtrees_[size_t(rank)].size());
  require(int64_t(partials.size()) == own, "bucket exchange: got ", partials.size(),
          " partial sums, expected ", own);
  if (size == 1) return;  // the only partial is the root

  const std::vector<int64_t> counts = ownership_.counts(bucket);
  const auto begin_of = [&](int r) {
    return ownership_.part(bucket, r).offset - ownership_.bucket(bucket).offset;
  };
  const int64_t length = counts[size_t(rank)];
  std::vector<int64_t> send_counts;
  std::vector<int64_t> receive_counts;
  int64_t received = 0;
  for (int r = 0; r < size; ++r) {
    send_counts.push_back(own * counts[size_t(r)]);
    receive_counts.push_back(int64_t(subtrees_[size_t(r)].size()) * length);
    received += receive_counts.back();
  }

  Tensor send = partials[0];  // a single partial is already in the order of destinations
  if (own > 1) {
    int64_t at = 0;
    for (int r = 0; r < size; ++r) {
      for (const Tensor& partial : partials) {
        const int64_t count = counts[size_t(r)];
        context_.copy(send_.columns(at, count), partial.columns(begin_of(r), count));
        at += count;
      }
    }
    send = send_.columns(0, at);
  }
  group_.all_to_all(context_, send, send_counts, receive_.columns(0, received), receive_counts);
  if (length > 0) sum_in_tree_order(length);
  const Tensor root = receive_.columns(0, length);
  if (gathers)
    group_.all_gather(context_, root, counts, partials[0]);
  else
    context_.copy(partials[0].columns(begin_of(rank), length), root);
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
