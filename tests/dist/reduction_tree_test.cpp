#include "dist/reduction_tree.h"

#include <string>

#include <gtest/gtest.h>

#include "expect_error.h"

namespace fathom::dist {
namespace {

// The definition: "3" for a shard, "(left+right)" for a sum.
std::string recursive_expression(int level, int index, int shards) {
  if (level == 0) return std::to_string(index);
  const std::string left = recursive_expression(level - 1, 2 * index, shards);
  const int right_begin = (2 * index + 1) << (level - 1);
  if (right_begin >= shards) return left;
  return "(" + left + "+" + recursive_expression(level - 1, 2 * index + 1, shards) + ")";
}

std::string root_expression(int shards) {
  int level = 0;
  while ((1 << level) < shards) ++level;
  return recursive_expression(level, 0, shards);
}

// Adds expressions the way a caller adds buffers.
class Expressions {
 public:
  explicit Expressions(int shards) : stack_(shards) {}
  void push(TreeNode node, const std::string& expression) {
    sums.push_back(expression);
    for (int merges = stack_.push(node); merges > 0; --merges) {
      const std::string right = sums.back();
      sums.pop_back();
      sums.back() = "(" + sums.back() + "+" + right + ")";
    }
  }
  [[nodiscard]] const std::vector<TreeNode>& nodes() const { return stack_.nodes(); }

  std::vector<std::string> sums = {};

 private:
  TreeStack stack_;
};

TEST(ReductionTree, AssociationIsTheDefinitionsForEveryNumberOfRanks) {
  for (int V = 1; V <= 33; ++V)
    for (int N = 1; N <= V; ++N) {
      Expressions global(V);
      for (int rank = 0; rank < N; ++rank) {
        const ShardRange range = shard_range(rank, N, V);
        Expressions local(V);
        for (int shard = range.begin; shard < range.end; ++shard)
          local.push({.level = 0, .index = shard}, std::to_string(shard));
        ASSERT_EQ(local.nodes(), maximal_subtrees(range, V));
        for (size_t k = 0; k < local.sums.size(); ++k) {
          const TreeNode node = local.nodes()[k];
          ASSERT_EQ(local.sums[k], recursive_expression(node.level, node.index, V));
          global.push(node, local.sums[k]);
        }
      }
      ASSERT_EQ(global.sums, std::vector<std::string>{root_expression(V)}) << V << ", " << N;
    }
}

TEST(ReductionTree, ShardRangesCoverAllShardsInOrderAndEvenly) {
  for (int V = 1; V <= 33; ++V)
    for (int N = 1; N <= V; ++N) {
      int next = 0;
      for (int rank = 0; rank < N; ++rank) {
        const ShardRange range = shard_range(rank, N, V);
        ASSERT_EQ(range.begin, next);
        ASSERT_TRUE(range.count() == V / N || range.count() == V / N + 1);
        next = range.end;
      }
      ASSERT_EQ(next, V);
    }
}

TEST(ReductionTree, PowerOfTwoRanksSendOnePartialEach) {
  for (const int N : {1, 2, 4, 8, 16})
    for (int rank = 0; rank < N; ++rank)
      EXPECT_EQ(maximal_subtrees(shard_range(rank, N, 16), 16).size(), 1u);
}

TEST(ReductionTree, ThreeRanksOfSixteenShardsSendTwoThreeAndTwo) {
  EXPECT_EQ(maximal_subtrees(shard_range(0, 3, 16), 16).size(), 2u);
  EXPECT_EQ(maximal_subtrees(shard_range(1, 3, 16), 16).size(), 3u);
  EXPECT_EQ(maximal_subtrees(shard_range(2, 3, 16), 16).size(), 2u);
}

TEST(ReductionTree, NeedsLogarithmicallyManyBuffers) {
  EXPECT_EQ(buffers_needed({.begin = 0, .end = 1}, 1), 1);
  EXPECT_EQ(buffers_needed({.begin = 0, .end = 8}, 8), 4);
  EXPECT_EQ(buffers_needed({.begin = 0, .end = 1024}, 1024), 11);
  EXPECT_EQ(buffers_needed({.begin = 3, .end = 4}, 8), 1);
}

TEST(ReductionTree, RefusesMoreRanksThanShards) {
  expect_error<InvalidArgument>([] { (void)shard_range(0, 9, 8); },
                                {"9 ranks and 8 shards", "batch.shards"});
  expect_error<InvalidArgument>([] { (void)shard_range(2, 2, 8); }, {"rank is 2", "0 to 1"});
}

}  // namespace
}  // namespace fathom::dist
