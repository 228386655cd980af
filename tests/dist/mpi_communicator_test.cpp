// Runs under mpirun; every rank runs every test.
#include "dist/mpi_communicator.h"

#include <cstdio>
#include <stdexcept>
#include <string_view>

#include <gtest/gtest.h>

#include "collective_checks.h"
#include "core/base/system.h"
#include "data_group_checks.h"
#include "dist/agreement.h"
#include "dist/gradient_reducer.h"
#include "dist/session.h"
#include "dist/watchdog.h"
#include "expect_error.h"
#include "reducer_cases.h"
#include "slice_gather_checks.h"

namespace fathom::dist {
namespace {

MpiSession* mpi = nullptr;
Communicator* world = nullptr;

TEST(MpiCommunicator, PerformsEveryCollective) { expect_every_collective(*world); }

TEST(MpiCommunicator, SplitsCallsThatAreTooLong) {
  for (const int64_t largest : {1, 3, 17}) {
    const auto group = make_mpi_communicator(*mpi, largest);
    expect_every_collective(*group);
    expect_every_collective(*group->duplicate());
  }
}

TEST(MpiCommunicator, RefusesALargestCountBeyondAnInt) {
  expect_error<InvalidArgument>([] { (void)make_mpi_communicator(*mpi, int64_t{1} << 31); },
                                {"largest count is 2147483648"});
}

TEST(MpiCommunicator, DuplicateServesASecondThread) { expect_independent_duplicate(*world); }

TEST(MpiCommunicator, TurnsMpiErrorsIntoDeviceErrorNamingTheCall) {
  if (world->size() < 2) GTEST_SKIP() << "needs two ranks";
  const auto group = world->duplicate();
  std::vector<int64_t> send_counts(size_t(group->size()), 0);
  std::vector<int64_t> receive_counts(size_t(group->size()), 0);
  if (group->rank() == 0) send_counts[1] = 4;  // more than rank 1 expects
  if (group->rank() == 1) receive_counts[0] = 1;
  const std::vector<float> send(group->rank() == 0 ? 4 : 0);
  std::vector<float> receive(group->rank() == 1 ? 1 : 0);
  const auto exchange = [&] { group->all_to_all(send, send_counts, receive, receive_counts); };

  if (group->rank() == 1)
    expect_error<DeviceError>(exchange, {"MPI_Wait: ", "truncated"});
  else
    exchange();
  world->barrier();
}

TEST(MpiCommunicator, NamesTheOddRank) {
  const std::string value = world->rank() == world->size() - 1 ? "b" : "a";
  if (world->size() < 2) {
    check_agreement(*world, {{.what = "config", .value = value}});
    return;
  }
  expect_error<InvalidArgument>(
      [&] { check_agreement(*world, {{.what = "config", .value = value}}); },
      {join("config: rank ", world->size() - 1, " on ", host_name(), " has 'b'")});
}

TEST(MpiCommunicator, CarriesTheDataGroup) {
  expect_every_data_operation(*world);
  expect_shard_order(*world, 7);
}

TEST(MpiCommunicator, CarriesTheGradientReducer) {
  for (const int shards : {4, 5, 24})
    for (const Overlap overlap : {Overlap::kOff, Overlap::kOn}) {
      expect_tree_sum<float>(*world, {.overlap = overlap, .shards = shards}, 64);
      expect_tree_sum<double>(*world, {.overlap = overlap, .shards = shards}, 32);
      expect_fast_sum<float>(
          *world, {.reduction = Reduction::kFast, .overlap = overlap, .shards = shards}, 64);
    }
}

TEST(MpiCommunicator, CarriesTheSliceGather) { expect_slices_gathered<float>(*world); }

// The tests run on one machine.
TEST(MpiCommunicator, OfTheNodeHasAllRanksOfThisMachine) {
  const auto node = make_node_communicator(*mpi);
  EXPECT_EQ(node->size(), world->size());
  EXPECT_EQ(node->rank(), world->rank());
  EXPECT_EQ(node->all_gather(host_name()), world->all_gather(host_name()));
}

// A hang must name the test instead of waiting for the harness.
void abort_on_hang(const Watchdog::Expiry& expiry) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::fprintf(stderr, "rank %d hangs in %s after %.0f s\n", world->rank(),
               test != nullptr ? test->name() : "start", expiry.seconds);
  world->abort("hang", 7);
}

class ProgressListener : public ::testing::EmptyTestEventListener {
 public:
  explicit ProgressListener(Watchdog& watchdog) : watchdog_(watchdog) {}
  void OnTestStart(const ::testing::TestInfo&) override { watchdog_.progress(); }

 private:
  Watchdog& watchdog_;
};

// What a command does: 0 when MPI was started and all ranks take part. A rank that throws during
// the session must not leave the others waiting.
int run_in_session(int rank_that_throws) {
  try {
    const auto session = start();
    Communicator& group = session->world();
    if (group.rank() == rank_that_throws) throw std::runtime_error("planned");
    const bool all_met = group.all_reduce_max(group.rank()) == group.size() - 1;
    return session->uses_mpi() && all_met ? 0 : 1;
  } catch (const std::runtime_error&) {
    return 1;  // not reached: the session aborts
  }
}

int run(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "session") return run_in_session(/*rank_that_throws=*/-1);
  if (mode == "throw") return run_in_session(/*rank_that_throws=*/1);
  MpiSession session;
  mpi = &session;
  const auto group = make_mpi_communicator(session);
  world = group.get();
  check_launch(group->size());
  if (mode == "abort") {  // rank 1 gives up, the others wait
    if (group->rank() == 1) group->abort("test", 7);
    group->barrier();
    return 0;
  }
  Watchdog watchdog(Watchdog::Duration(60), abort_on_hang);
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  listeners.Append(new ProgressListener(watchdog));
  return int(group->all_reduce_max(RUN_ALL_TESTS()));
}

}  // namespace
}  // namespace fathom::dist

int main(int argc, char** argv) { return fathom::dist::run(argc, argv); }
