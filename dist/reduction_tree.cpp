#include "dist/reduction_tree.h"

#include <algorithm>
#include <cstdint>

#include "core/base/error.h"

namespace fathom::dist {

ShardRange shard_range(int rank, int size, int shards) {
  require(size >= 1 && size <= shards, "shards: ", size, " ranks and ", shards,
          " shards, expected at least one shard per rank; raise batch.shards or start fewer ranks");
  require(rank >= 0 && rank < size, "shards: rank is ", rank, ", expected 0 to ", size - 1);
  const auto boundary = [&](int r) { return int(int64_t{r} * shards / size); };
  return {.begin = boundary(rank), .end = boundary(rank + 1)};
}

int TreeStack::push(TreeNode node) {
  nodes_.push_back(node);
  int merges = 0;
  for (;;) {
    TreeNode& top = nodes_.back();
    const bool is_left = top.index % 2 == 0;
    const int64_t right_begin = (int64_t{top.index} + 1) << top.level;
    if (is_left && top.index == 0 && right_begin >= shards_) return merges;  // the root
    if (is_left && right_begin >= shards_) {  // no right child: the parent is the same sum
      top = {.level = top.level + 1, .index = top.index / 2};
      continue;
    }
    const bool has_left_sibling =
        !is_left && nodes_.size() >= 2 &&
        nodes_[nodes_.size() - 2] == TreeNode{.level = top.level, .index = top.index - 1};
    if (!has_left_sibling) return merges;
    const TreeNode parent = {.level = top.level + 1, .index = top.index / 2};
    nodes_.pop_back();
    nodes_.back() = parent;
    ++merges;
  }
}

std::vector<TreeNode> maximal_subtrees(ShardRange range, int shards) {
  TreeStack stack(shards);
  for (int shard = range.begin; shard < range.end; ++shard)
    (void)stack.push({.level = 0, .index = shard});
  return stack.nodes();
}

int buffers_needed(ShardRange range, int shards) {
  TreeStack stack(shards);
  size_t most = 0;
  for (int shard = range.begin; shard < range.end; ++shard) {
    most = std::max(most, stack.nodes().size() + 1);
    (void)stack.push({.level = 0, .index = shard});
  }
  return int(most);
}

}  // namespace fathom::dist
