#include "launcher/cores.h"

#include <gtest/gtest.h>

#include "core/base/limits.h"
#include "dist/local_communicator.h"
#include "tests/dist/rank_threads.h"

namespace fathom::launcher {
namespace {

using Masks = std::vector<std::vector<int>>;

TEST(ShareOfCores, IsAllOfThemForALoneRank) {
  EXPECT_EQ(share_of_cores({{0, 1, 2, 3}}, 0, std::nullopt), 4);
  EXPECT_EQ(share_of_cores({{5}}, 0, std::nullopt), 1);
}

TEST(ShareOfCores, SharesOutWhatSeveralMayUse) {
  for (const int rank : {0, 1, 2})
    EXPECT_EQ(share_of_cores(Masks(3, {0, 1, 2}), rank, std::nullopt), 1);
  EXPECT_EQ(share_of_cores(Masks(2, {0, 1, 2, 3, 4}), 0, std::nullopt), 2);
  EXPECT_EQ(share_of_cores(Masks(4, {0, 1}), 3, std::nullopt), 1) << "at least one";
}

TEST(ShareOfCores, LeavesABoundRankItsOwn) {
  const Masks bound = {{0, 1}, {2, 3, 4}, {5}};
  EXPECT_EQ(share_of_cores(bound, 0, std::nullopt), 2);
  EXPECT_EQ(share_of_cores(bound, 1, std::nullopt), 3);
  EXPECT_EQ(share_of_cores(bound, 2, std::nullopt), 1);
  // Two to a socket.
  const Masks by_socket = {{0, 1, 2, 3}, {0, 1, 2, 3}, {4, 5, 6, 7}, {4, 5, 6, 7}};
  for (const int rank : {0, 1, 2, 3}) EXPECT_EQ(share_of_cores(by_socket, rank, std::nullopt), 2);
}

TEST(ShareOfCores, IsBoundedByAQuotaRoundedUp) {
  const std::vector<int> eight = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(share_of_cores({eight}, 0, 2.5), 3);
  EXPECT_EQ(share_of_cores({eight}, 0, 0.5), 1);
  EXPECT_EQ(share_of_cores({eight}, 0, 64.0), 8);
  EXPECT_EQ(share_of_cores({eight, eight}, 1, 4.0), 2) << "of both together";
  EXPECT_EQ(share_of_cores({eight, eight}, 1, 1.0), 1);
}

// Threads of one process have one mask.
TEST(CoresOfRank, KnowsTheOthersOfItsMachine) {
  const int all = available_cores();
  for (const int ranks : {1, 2, 3})
    dist::run_ranks(ranks, [&](dist::Communicator& node) {
      EXPECT_EQ(cores_of_rank(node), std::max(1, all / ranks));
    });
}

TEST(ThreadsPerRank, AreThoseAskedForElseOneForEachCore) {
  Config config;
  EXPECT_EQ(threads_per_rank(config, 6), 6);
  config.train.threads = 4;
  EXPECT_EQ(threads_per_rank(config, 6), 4);
  config.train.device = DeviceChoice::kReference;
  EXPECT_EQ(threads_per_rank(config, 6), 1);
}

}  // namespace
}  // namespace fathom::launcher
