// An error of one rank ends all of them, and is thrown on.
#include "launcher/collective.h"

#include <array>
#include <new>
#include <stdexcept>

#include <gtest/gtest.h>

#include "dist/local_communicator.h"
#include "tests/dist/rank_threads.h"
#include "tests/support/expect_error.h"

namespace fathom::launcher {
namespace {

class ThreadSession final : public dist::Session {
 public:
  explicit ThreadSession(dist::Communicator& world) : world_(world) {}
  dist::Communicator& world() override { return world_; }
  dist::Communicator& node() override { return world_; }
  bool uses_mpi() const override { return false; }

 private:
  dist::Communicator& world_;
};

struct Options {
  int failing_rank = -1;
};

int meet(const Options& options, dist::Session& session, std::array<int, 3>& met) {
  if (session.world().rank() == options.failing_rank) fail<DataError>("the disk is empty");
  session.world().barrier();
  met[size_t(session.world().rank())] = 1;
  return 40 + session.world().rank();
}

int run_out_of_memory(const Options&, dist::Session&) { throw std::bad_alloc(); }

int throw_another(const Options&, dist::Session&) { throw std::runtime_error("of a library"); }

TEST(OnAllRanks, ReturnsWhatTheCommandReturns) {
  std::array<int, 3> met{};
  dist::run_ranks(3, [&](dist::Communicator& world) {
    ThreadSession session(world);
    EXPECT_EQ(on_all_ranks(session, meet, Options{}, met), 40 + world.rank());
  });
  EXPECT_EQ(met, (std::array<int, 3>{1, 1, 1}));
}

// Errors are caught here, so that nothing but on_all_ranks can release the peers.
TEST(OnAllRanks, EndsThePeersOfARankThatFails) {
  for (const int failing : {0, 2}) {
    std::array<int, 3> met{};
    testing::internal::CaptureStderr();
    dist::run_ranks(3, [&](dist::Communicator& world) {
      ThreadSession session(world);
      const auto run = [&] {
        (void)on_all_ranks(session, meet, Options{.failing_rank = failing}, met);
      };
      if (world.rank() == failing)
        EXPECT_TRUE(support::throws_with<DataError>("the disk is empty", run));
      else
        EXPECT_TRUE(support::throws_with<DeviceError>("the disk is empty", run));
    });
    EXPECT_EQ(met, (std::array<int, 3>{}));
    EXPECT_NE(testing::internal::GetCapturedStderr().find(
                  join("fathom: rank ", failing, ": the disk is empty\n")),
              std::string::npos);
  }
}

TEST(OnAllRanks, SaysWhatToDoWhereMemoryRunsOut) {
  testing::internal::CaptureStderr();
  dist::run_ranks(2, [&](dist::Communicator& world) {
    ThreadSession session(world);
    EXPECT_THROW((void)on_all_ranks(session, run_out_of_memory, Options{}), std::bad_alloc);
  });
  EXPECT_NE(testing::internal::GetCapturedStderr().find(
                "fathom: rank 0: out of memory; lower batch.micro_tokens"),
            std::string::npos);
}

TEST(FailureOf, HasTheCodeAndTheTextOfAnError) {
  EXPECT_EQ(failure_of(DataError("the disk is empty")).code, ExitCode::kData);
  EXPECT_EQ(failure_of(DataError("the disk is empty")).text, "the disk is empty");
  EXPECT_EQ(failure_of(std::runtime_error("of a library")).code, ExitCode::kIo);
  EXPECT_EQ(failure_of(std::bad_alloc()).code, ExitCode::kPeer);
}

TEST(OnAllRanks, ThrowsALoneRanksErrorWithoutAWord) {
  const auto group = dist::make_local_group(1);
  ThreadSession session(*group[0]);
  std::array<int, 3> met{};
  testing::internal::CaptureStderr();

  EXPECT_TRUE(support::throws_with<DataError>("the disk is empty", [&] {
    (void)on_all_ranks(session, meet, Options{.failing_rank = 0}, met);
  }));
  EXPECT_TRUE(support::throws_with<std::runtime_error>(
      "of a library", [&] { (void)on_all_ranks(session, throw_another, Options{}); }));

  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  group[0]->barrier();  // the group lives
}

}  // namespace
}  // namespace fathom::launcher
