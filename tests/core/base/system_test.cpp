#include "core/base/system.h"

#include <array>
#include <map>

#include <gtest/gtest.h>
#include <unistd.h>

namespace fathom {
namespace {

Environment fake(const std::map<std::string, std::string>& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

TEST(HostName, IsThatOfTheSystem) {
  std::array<char, 256> name{};
  ASSERT_EQ(::gethostname(name.data(), name.size() - 1), 0);
  EXPECT_EQ(host_name(), name.data());
}

TEST(PhysicalMemory, IsPlausible) {
  EXPECT_GT(physical_memory(), int64_t{1} << 26);
  EXPECT_LT(physical_memory(), int64_t{1} << 50);
}

TEST(RandomBits, Differ) { EXPECT_NE(random_bits(), random_bits()); }

TEST(ProcessEnvironment, ReadsTheProcess) {
  EXPECT_TRUE(process_environment("PATH").has_value());
  EXPECT_FALSE(process_environment("FATHOM_NO_SUCH_VARIABLE").has_value());
}

TEST(ReadLaunch, StartedAloneHasNoEvidence) {
  const Launch launch = read_launch(fake({}));
  EXPECT_EQ(launch.processes, 1);
  EXPECT_EQ(launch.evidence, "");
  EXPECT_FALSE(launch.speaks_pmix);
}

TEST(ReadLaunch, TakesTheLauncherNextToTheProcess) {
  EXPECT_EQ(read_launch(fake({{"OMPI_COMM_WORLD_SIZE", "4"}, {"SLURM_NTASKS", "8"}})).evidence,
            "OMPI_COMM_WORLD_SIZE=4");
  EXPECT_EQ(read_launch(fake({{"PMI_SIZE", "8"}})).processes, 8);
  EXPECT_EQ(read_launch(fake({{"MPI_LOCALNRANKS", "3"}})).evidence, "MPI_LOCALNRANKS=3");
  EXPECT_EQ(
      read_launch(
          fake({{"SLURM_STEP_ID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "1"}}))
          .evidence,
      "SLURM_STEP_NUM_TASKS=1");
  EXPECT_EQ(read_launch(fake({{"PMIX_RANK", "0"}})).evidence, "PMIX_RANK");
}

TEST(ReadLaunch, KnowsWhichLaunchersUsePmix) {
  EXPECT_TRUE(read_launch(fake({{"OMPI_COMM_WORLD_SIZE", "4"}})).speaks_pmix);
  EXPECT_FALSE(read_launch(fake({{"PMI_SIZE", "4"}})).speaks_pmix);
  EXPECT_TRUE(read_launch(fake({{"PMI_SIZE", "4"}, {"PMIX_RANK", "1"}})).speaks_pmix);
}

TEST(ReadLaunch, BatchScriptAndInteractiveShellAreAlone) {
  EXPECT_EQ(read_launch(fake({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}})).evidence, "");
  EXPECT_EQ(read_launch(fake({{"SLURM_STEP_ID", "4294967290"}, {"SLURM_NTASKS", "4"}})).evidence,
            "");
}

TEST(ReadLaunch, NonsenseInAVariableIsNoEvidence) {
  for (const char* value : {"", "many", "0", "-3", "4x"})
    EXPECT_EQ(read_launch(fake({{"OMPI_COMM_WORLD_SIZE", value}})).evidence, "") << value;
}

TEST(BatchJob, IsNamedByItsScheduler) {
  EXPECT_EQ(batch_job(fake({})), "");
  EXPECT_EQ(batch_job(fake({{"SLURM_JOB_ID", "7"}, {"PBS_JOBID", "8"}})), "7");
  EXPECT_EQ(batch_job(fake({{"LSB_JOBID", "9"}})), "9");
}

}  // namespace
}  // namespace fathom
