#include "monitoring/targets.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/base/error.h"
#include "tests/support/temporary_directory.h"

namespace fathom::monitoring {
namespace {

using support::read_text;
using support::TemporaryDirectory;
using ::testing::HasSubstr;

size_t entries(const std::filesystem::path& directory) {
  const std::filesystem::directory_iterator all(directory);
  return size_t(std::distance(begin(all), end(all)));
}

TEST(TargetsFile, IsAFileSdListWhileItExists) {
  const TemporaryDirectory directory;
  {
    const TargetsFile file(directory / "targets.json", "127.0.0.1:9464",
                           {{"run", "a \"b\""}, {"job_id", "17"}, {"unset", ""}});

    EXPECT_EQ(read_text(directory / "targets.json"),
              R"([{"targets":["127.0.0.1:9464"],"labels":{"job_id":"17","run":"a \"b\""}}])"
              "\n");
    EXPECT_EQ(entries(directory.path()), 1);  // nothing left aside
  }
  EXPECT_EQ(entries(directory.path()), 0);
}

TEST(TargetsFile, ReplacesTheFileOfARunThatWasKilled) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "targets.json") << "old";

  const TargetsFile file(directory / "targets.json", "10.0.0.7:80", {});

  EXPECT_EQ(read_text(directory / "targets.json"),
            "[{\"targets\":[\"10.0.0.7:80\"],\"labels\":{}}]\n");
}

TEST(TargetsFile, AFailureNamesThePathAndLeavesNothing) {
  const TemporaryDirectory directory;
  const auto path = directory / "missing" / "targets.json";
  std::filesystem::create_directory(directory / "targets.json");  // a rename onto it fails

  try {
    const TargetsFile file(path, "127.0.0.1:1", {});
    FAIL() << "no error";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("targets: opening directory " + path.parent_path().string() +
                          ": No such file or directory; Prometheus would not find this run"));
  }
  EXPECT_THROW(TargetsFile(directory / "targets.json", "127.0.0.1:1", {}), IoError);
  EXPECT_EQ(entries(directory.path()), 1);
}

TEST(ReachableAddress, NamesTheMachineWhenEveryInterfaceIsBound) {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);

  EXPECT_EQ(reachable_address("0.0.0.0:9464"), std::string(name.data()) + ":9464");
  EXPECT_EQ(reachable_address("127.0.0.1:9464"), "127.0.0.1:9464");
  EXPECT_EQ(reachable_address("10.0.0.7:9464"), "10.0.0.7:9464");
}

}  // namespace
}  // namespace fathom::monitoring
