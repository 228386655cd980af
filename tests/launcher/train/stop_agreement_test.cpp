#include "launcher/train/stop_agreement.h"

#include <gtest/gtest.h>

#include "tests/dist/rank_threads.h"

namespace fathom::launcher {
namespace {

// What three ranks agree on, of which one has seen something.
void expect_agreement(int seen_by, const StepAgreement& seen) {
  dist::run_ranks(3, [&](dist::Communicator& group) {
    const StepAgreement agreed = agree(group, group.rank() == seen_by ? seen : StepAgreement{});

    EXPECT_EQ(agreed.stops, seen.stops) << "rank " << group.rank();
    EXPECT_EQ(agreed.saves, seen.saves) << "rank " << group.rank();
    EXPECT_EQ(agreed.commit, seen.commit) << "rank " << group.rank();
  });
}

TEST(StopAgreement, IsNothingWhereNobodyHasSeenAnything) { expect_agreement(0, {}); }

TEST(StopAgreement, AStopOnAnyRankHoldsForAll) {
  for (const int rank : {0, 1, 2}) expect_agreement(rank, {.stops = true});
}

TEST(StopAgreement, ASaveByTheClockOfTheFirstRankHoldsForAll) {
  expect_agreement(0, {.saves = true});
}

TEST(StopAgreement, TheOutcomeOfACommitComesToAll) {
  expect_agreement(0, {.commit = CommitOutcome::kSaved});
  expect_agreement(0, {.commit = CommitOutcome::kFailed});
}

TEST(StopAgreement, KeepsAStopAndACommitApart) {
  dist::run_ranks(3, [](dist::Communicator& group) {
    StepAgreement mine;
    if (group.rank() == 0) mine.commit = CommitOutcome::kFailed;
    if (group.rank() == 2) mine.stops = true;

    const StepAgreement agreed = agree(group, mine);

    EXPECT_TRUE(agreed.stops);
    EXPECT_FALSE(agreed.saves);
    EXPECT_EQ(agreed.commit, CommitOutcome::kFailed);
  });
}

}  // namespace
}  // namespace fathom::launcher
