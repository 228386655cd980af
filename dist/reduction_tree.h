// The order in which gradients of V virtual shards are summed, the same for any number of ranks:
// a binary tree in which node (l, i) covers shards [i 2^l, (i+1) 2^l) that exist, and is its left
// child + its right child; where no right child exists it is the left child, without an addition.
// Rank r of N owns shards [rV/N, (r+1)V/N); it can sum the maximal subtrees within that range by
// itself, and those of all ranks, in shard order, give the root. Pure functions of V and N.
#pragma once

#include <vector>

namespace fathom::dist {

struct ShardRange {
  int begin = 0;
  int end = 0;  // exclusive
  [[nodiscard]] int count() const { return end - begin; }
  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

// Needs 1 <= size <= shards and 0 <= rank < size, else InvalidArgument; then never empty.
[[nodiscard]] ShardRange shard_range(int rank, int size, int shards);

struct TreeNode {
  int level = 0;
  int index = 0;
  friend bool operator==(const TreeNode&, const TreeNode&) = default;
};

// A binary counter over partial sums. Nodes are pushed from left to right without gaps; a node that
// completes a pair is added into its left neighbour at once. Node k of nodes() belongs to the
// caller's k-th buffer:
//
//   int merges = stack.push(node);                       // its sum lies in buffer `depth++`
//   for (; merges > 0; --merges, --depth) buffer[depth-2] += buffer[depth-1];
class TreeStack {
 public:
  explicit TreeStack(int shards) : shards_(shards) {}

  [[nodiscard]] int push(TreeNode node);
  [[nodiscard]] const std::vector<TreeNode>& nodes() const { return nodes_; }
  void clear() { nodes_.clear(); }

 private:
  int shards_;
  std::vector<TreeNode> nodes_ = {};
};

// The nodes left on the stack after the range's shards were pushed: its maximal subtrees.
[[nodiscard]] std::vector<TreeNode> maximal_subtrees(ShardRange range, int shards);

// The most buffers in use at once while the range is summed, the current shard included; about
// log2(count) + 1.
[[nodiscard]] int buffers_needed(ShardRange range, int shards);

}  // namespace fathom::dist
