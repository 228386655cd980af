#include "dist/launch_check.h"

#include <map>

#include <gtest/gtest.h>

#include "dist/session.h"
#include "expect_error.h"

namespace fathom::dist {
namespace {

Environment fake(const std::map<std::string, std::string>& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

TEST(Launch, StartedAloneNeedsNothing) { check_launch(1, fake({})); }

TEST(Launch, FittingMpirunPasses) {
  check_launch(4, fake({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "2"}}));
  check_launch(1, fake({{"OMPI_COMM_WORLD_SIZE", "1"}}));
}

TEST(Launch, CopiesOfRankZeroUnderMpirunAreRefused) {
  expect_error<InvalidArgument>(
      [] {
        check_launch(1, fake({{"OMPI_COMM_WORLD_SIZE", "4"}}));
      },
      {"4 processes were started (OMPI_COMM_WORLD_SIZE=4)", "each of them as rank 0 of 1",
       "mpirun of the MPI library"});
}

TEST(Launch, ForeignLaunchersAreRefused) {
  expect_error<InvalidArgument>([] { check_launch(1, fake({{"PMI_SIZE", "8"}})); }, {"PMI_SIZE=8"});
  expect_error<InvalidArgument>(
      [] {
        check_launch(2, fake({{"MPI_LOCALNRANKS", "3"}}));
      },
      {"MPI_LOCALNRANKS=3", "only 2 ranks"});
}

TEST(Launch, SrunWithoutPmixIsRefused) {
  expect_error<InvalidArgument>(
      [] {
        check_launch(1, fake({{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "4"}}));
      },
      {"4 processes", "SLURM_NTASKS=4", "srun --mpi=pmix"});
}

TEST(Launch, SrunStepCountsBeforeTheJob) {
  const auto step =
      fake({{"SLURM_STEP_ID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "1"}});
  check_launch(1, step);
}

TEST(Launch, MpirunInsideASlurmJobIgnoresTheDaemonsVariables) {
  check_launch(2, fake({{"OMPI_COMM_WORLD_SIZE", "2"},
                        {"SLURM_STEP_ID", "0"},
                        {"SLURM_NTASKS", "4"},
                        {"SLURM_STEP_NUM_TASKS", "4"}}));
}

TEST(Session, StartedAloneUsesNoMpi) {
  const auto session = start(fake({}));
  EXPECT_FALSE(session->uses_mpi());
  EXPECT_EQ(session->world().size(), 1);
  EXPECT_EQ(session->world().all_reduce_max(3), 3);
}

TEST(Session, RefusesALauncherWithoutPmix) {
  expect_error<InvalidArgument>(
      [] {
        (void)start(fake({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}}));
      },
      {"2 processes", "rank 0 of 1"});
  expect_error<InvalidArgument>([] { (void)start(fake({{"PMI_SIZE", "2"}})); }, {"PMI_SIZE=2"});
}

TEST(Session, OneTaskUnderSrunWithoutPmixIsAlone) {
  const auto session = start(fake({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}));
  EXPECT_FALSE(session->uses_mpi());
}

}  // namespace
}  // namespace fathom::dist
