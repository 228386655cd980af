// Sums a bucket over the ranks in tree mode: every rank contributes the partial sums of its maximal
// subtrees, and rank r adds the part that it owns of all of them in the tree's order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dist/data_group.h"
#include "dist/ownership.h"
#include "dist/reduction_tree.h"

namespace fathom::dist {

class BucketExchange {
 public:
  // Its memory belongs to `context`. All references outlive it.
  BucketExchange(DataGroup& group, Context& context, const Ownership& ownership, int shards,
                 DType dtype);
  // Elements that it stages on a rank.
  [[nodiscard]] static int64_t staged_count(const Ownership& ownership, int shards, int rank);

  // partials[k], (1, n) each, is bucket's part of the sum of this rank's k-th maximal subtree. Then
  // what this rank owns of partials[0] is the root; with `gathers` all of it is, the same bits on
  // every rank. Queued on the context; collective.
  void reduce(int64_t bucket, std::span<const Tensor> partials, bool gathers);

 private:
  void sum_in_tree_order(int64_t length);

  DataGroup& group_;
  Context& context_;
  const Ownership& ownership_;
  int shards_;
  std::vector<std::vector<TreeNode>> subtrees_;  // per rank
  Tensor send_;                                  // this rank's partials, grouped by destination
  Tensor receive_;  // this rank's part of all ranks' partials, in shard order
};

}  // namespace fathom::dist
