// One bucket's way through the ranks in tree mode: every rank brings the partial sums of its
// maximal subtrees, rank r adds up segment r of all of them in the tree's order, all get the whole.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dist/data_group.h"
#include "dist/reduction_tree.h"

namespace fathom::dist {

class BucketExchange {
 public:
  // For buckets of up to `longest` elements of `dtype`; its memory belongs to `context`.
  BucketExchange(DataGroup& group, Context& context, int shards, int64_t longest, DType dtype);

  // partials[k], (1, n) each, is the sum of this rank's k-th maximal subtree. Then partials[0]
  // holds the root, the same bits on every rank. Queued on the context; collective.
  void reduce(std::span<const Tensor> partials);

 private:
  void sum_in_tree_order(int64_t length);

  DataGroup& group_;
  Context& context_;
  int shards_;
  std::vector<std::vector<TreeNode>> subtrees_;  // per rank
  Tensor send_;                                  // this rank's partials, cut by destination
  Tensor receive_;  // segment `rank` of all ranks' partials, in shard order
};

}  // namespace fathom::dist
