#include "dist/bucket_exchange.h"

#include "core/base/error.h"

namespace fathom::dist {

template <class T>
BucketExchange<T>::BucketExchange(int rank, int size, int shards)
    : rank_(rank), size_(size), shards_(shards) {
  for (int r = 0; r < size; ++r)
    subtrees_.push_back(maximal_subtrees(shard_range(r, size, shards), shards));
}

template <class T>
void BucketExchange<T>::reduce(Communicator& group, std::span<const std::span<T>> partials) {
  const int64_t own = int64_t(subtrees_[size_t(rank_)].size());
  require(int64_t(partials.size()) == own, "bucket exchange: got ", partials.size(),
          " partial sums, expected ", own);
  if (size_ == 1) return;  // the only partial is the root

  const int64_t n = int64_t(partials[0].size());
  const auto boundary = [&](int r) { return n * r / size_; };
  const int64_t length = boundary(rank_ + 1) - boundary(rank_);
  std::vector<int64_t> segments;
  std::vector<int64_t> send_counts;
  std::vector<int64_t> receive_counts;
  int64_t received = 0;
  for (int r = 0; r < size_; ++r) {
    segments.push_back(boundary(r + 1) - boundary(r));
    send_counts.push_back(own * segments.back());
    receive_counts.push_back(int64_t(subtrees_[size_t(r)].size()) * length);
    received += receive_counts.back();
  }

  std::span<const T> send = partials[0];  // one partial is already cut by destination
  if (own > 1) {
    send_.clear();
    for (int r = 0; r < size_; ++r)
      for (const std::span<T> partial : partials)
        send_.insert(send_.end(), partial.begin() + boundary(r), partial.begin() + boundary(r + 1));
    send = send_;
  }
  receive_.resize(size_t(received));
  group.all_to_all(send, send_counts, receive_, receive_counts);
  sum_in_tree_order(length);
  group.all_gather(std::span<const T>(receive_).first(size_t(length)), segments, partials[0]);
}

// The root of the received partials ends in the first `length` elements.
template <class T>
void BucketExchange<T>::sum_in_tree_order(int64_t length) {
  TreeStack stack(shards_);
  std::vector<T*> sums;
  T* next = receive_.data();
  for (const std::vector<TreeNode>& nodes : subtrees_) {
    for (const TreeNode node : nodes) {
      sums.push_back(next);
      next += length;
      for (int merges = stack.push(node); merges > 0; --merges) {
        const T* right = sums.back();
        sums.pop_back();
        T* left = sums.back();
        for (int64_t i = 0; i < length; ++i) left[i] += right[i];
      }
    }
  }
}

template class BucketExchange<float>;
template class BucketExchange<double>;

}  // namespace fathom::dist
