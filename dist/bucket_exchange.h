// One bucket's way through the ranks in tree mode: every rank brings the partial sums of its
// maximal subtrees, rank r adds up segment r of all of them in the tree's order, all get the whole.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dist/communicator.h"
#include "dist/reduction_tree.h"

namespace fathom::dist {

template <class T>
class BucketExchange {
 public:
  BucketExchange(int rank, int size, int shards);

  // partials[k], (n) each, is the sum of this rank's k-th maximal subtree. On return partials[0]
  // holds the root, the same bits on every rank. Collective on `group`.
  void reduce(Communicator& group, std::span<const std::span<T>> partials);

 private:
  void sum_in_tree_order(int64_t length);

  int rank_;
  int size_;
  int shards_;
  std::vector<std::vector<TreeNode>> subtrees_ = {};  // per rank
  std::vector<T> send_ = {};                          // this rank's partials, cut by destination
  std::vector<T> receive_ = {};  // segment `rank` of all ranks' partials, in shard order
};

extern template class BucketExchange<float>;
extern template class BucketExchange<double>;

}  // namespace fathom::dist
