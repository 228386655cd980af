#include "core/base/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/support/temporary_directory.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;
using support::write_text;
using ::testing::HasSubstr;

constexpr int64_t kMebibyte = 1 << 20;

// A machine as files.
class Limits : public ::testing::Test {
 protected:
  Limits() { write("proc/meminfo", "MemTotal:       8388608 kB\nMemFree: 1024 kB\n"); }  // 8 GiB

  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_.path() / path).parent_path());
    write_text(root_.path() / path, text);
  }
  // Version 2, mounted at /sys/fs/cgroup; the process is in /job/step.
  void write_unified() const {
    write("proc/self/mountinfo",
          "22 27 0:21 / /proc rw - proc proc rw\n"
          "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
    write("proc/self/cgroup", "0::/job/step\n");
  }
  // Version 1; a container that sees its own part only: /docker/ab is what is mounted.
  void write_separate() const {
    write("proc/self/mountinfo",
          "35 31 0:32 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
          "32 31 0:29 /docker/ab /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
          "36 31 0:38 / /sys/fs/cgroup/unified ro - cgroup2 cgroup2 rw\n");
    write("proc/self/cgroup",
          "9:name=systemd:/\n4:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab/x\n"
          "0::/\n");
  }
  [[nodiscard]] MemoryBound reservable(const ShellLimits& limits = {}) const {
    return reservable_memory(root_.path(), limits);
  }

  support::TemporaryDirectory root_;
};

TEST_F(Limits, WithoutAnyAreThoseOfTheMachine) {
  EXPECT_EQ(memory_limit(root_.path()).bytes, 8192 * kMebibyte);
  EXPECT_EQ(memory_limit(root_.path()).remedy, "");
  EXPECT_EQ(reservable().bytes, 8192 * kMebibyte);
  EXPECT_EQ(cpu_quota(root_.path()), std::nullopt);
  EXPECT_EQ(available_cores(root_.path()), int(allowed_cores().size()));
  write_unified();
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  write("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  EXPECT_EQ(memory_limit(root_.path()).bytes, 8192 * kMebibyte);
  EXPECT_EQ(cpu_quota(root_.path()), std::nullopt);
}

TEST_F(Limits, OfAGroupOfVersion2AreTheLeastOfThoseAboveIt) {
  write_unified();
  write("sys/fs/cgroup/job/step/memory.max", "6442450944\n");
  write("sys/fs/cgroup/job/step/cpu.max", "350000 100000\n");
  EXPECT_EQ(memory_limit(root_.path()).bytes, 6144 * kMebibyte);
  EXPECT_THAT(memory_limit(root_.path()).remedy, HasSubstr("control group"));
  EXPECT_EQ(cpu_quota(root_.path()), 3.5);
  write("sys/fs/cgroup/job/memory.max", "1073741824\n");
  write("sys/fs/cgroup/job/cpu.max", "25000 50000\n");
  EXPECT_EQ(memory_limit(root_.path()).bytes, 1024 * kMebibyte);
  EXPECT_EQ(cpu_quota(root_.path()), 0.5);
  EXPECT_EQ(available_cores(root_.path()), 1);
}

TEST_F(Limits, OfGroupsOfVersion1AreFoundWhereAContainerSeesThem) {
  write_separate();
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
  write("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "150000\n");
  write("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");  // none
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(memory_limit(root_.path()).bytes, 2048 * kMebibyte);
  EXPECT_EQ(cpu_quota(root_.path()), 1.5);
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // none
  EXPECT_EQ(memory_limit(root_.path()).bytes, 8192 * kMebibyte);
}

// Told by the host's name of a group, of which only the mounted part can be seen.
TEST_F(Limits, OfAGroupThatCannotBeSeenAreThoseOfItsMount) {
  write_unified();
  write("proc/self/cgroup", "0::/../../other\n");
  write("sys/fs/cgroup/memory.max", "1073741824\n");
  EXPECT_EQ(memory_limit(root_.path()).bytes, 1024 * kMebibyte);
}

TEST_F(Limits, DamagedFilesLimitNothing) {
  write("proc/self/mountinfo",
        "31 23\n\n - cgroup2\n31 23 0:28 / /sys/fs/cgroup rw - cgroup2 c r\n");
  write("proc/self/cgroup", "nonsense\n0:\n0::/job\n");
  for (const char* text : {"", "\n", "many", "100000", "0 0", "100000 0", "-5 100000", "1 max"}) {
    write("sys/fs/cgroup/job/cpu.max", text);
    EXPECT_EQ(cpu_quota(root_.path()), std::nullopt) << text;
  }
}

TEST_F(Limits, OfReservationsLeaveHalfOfWhatIsFreeAndNameTheirRemedy) {
  write("proc/self/status", "VmSize:\t 1048576 kB\nVmData:\t 524288 kB\n");
  const ShellLimits shell = {.address_space = 5120 * kMebibyte};
  EXPECT_EQ(reservable(shell).bytes, (4096 - 128) / 2 * kMebibyte);
  EXPECT_EQ(reservable(shell).remedy, "raise ulimit -v");
  EXPECT_EQ(reservable({.data = 2560 * kMebibyte}).bytes, (2048 - 128) / 2 * kMebibyte);
  EXPECT_EQ(reservable({.data = 2560 * kMebibyte}).remedy, "raise ulimit -d");
  EXPECT_EQ(reservable({.address_space = 100 * kMebibyte}).bytes, 0) << "more is mapped already";

  write("proc/meminfo",
        "MemTotal: 8388608 kB\nCommitLimit: 4194304 kB\nCommitted_AS: 1048576 kB\n");
  write("proc/sys/vm/overcommit_memory", "0\n");
  EXPECT_EQ(reservable().bytes, 8192 * kMebibyte);
  write("proc/sys/vm/overcommit_memory", "2\n");
  EXPECT_EQ(reservable().bytes, (3072 - 128) / 2 * kMebibyte);
  EXPECT_THAT(reservable().remedy, HasSubstr("vm.overcommit_memory"));
}

TEST(ShellLimits, AreThoseOfTheProcess) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit lower = {.rlim_cur = rlim_t(1) << 50, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &lower), 0);
  EXPECT_EQ(shell_limits().address_space, int64_t(1) << 50);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
}

TEST(OfThisMachine, LimitsAreReasonable) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), int(allowed_cores().size()));
  EXPECT_GT(memory_limit().bytes, 64 * kMebibyte);
  EXPECT_LT(memory_limit().bytes, int64_t{1} << 50);
}

}  // namespace
}  // namespace fathom
