// Directory, StagedDirectory and FileLock of core/base/file.h.
#include <cerrno>
#include <chrono>
#include <future>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/file.h"
#include "tests/support/expect_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_directory.h"

namespace {
int flock_error = 0, exchange_error = 0;  // what they say in place of working; 0: they work
}

// These override the C library's, to simulate less capable file systems.
extern "C" int flock(int fd, int operation) {
  if (flock_error == 0) return int(::syscall(SYS_flock, fd, operation));
  errno = flock_error;
  return -1;
}

extern "C" int renameat2(int folder, const char* from, int to_folder, const char* to,
                         unsigned flags) noexcept {
  if (exchange_error == 0) return int(::syscall(SYS_renameat2, folder, from, to_folder, to, flags));
  errno = exchange_error;
  return -1;
}

namespace fathom {
namespace {

namespace fs = std::filesystem;
using support::FileSizeLimit;
using support::names_in;
using support::read_text;
using support::rights_of;
using support::TemporaryDirectory;
using support::throws_with;
using support::write_text;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Directory, StaysTheSameWhenItsPathDoesNot) {
  const TemporaryDirectory directory;
  fs::create_directory(directory / "run");
  const Directory held("test", directory / "run");
  fs::rename(directory / "run", directory / "moved");
  fs::create_directory(directory / "run");

  held.write_new("file", "text");
  held.replace("file", "more");

  EXPECT_THAT(names_in(directory / "run"), IsEmpty());
  EXPECT_EQ(read_text(directory / "moved" / "file"), "more");
}

TEST(Directory, FollowsALinkOnlyWhenAsked) {
  const TemporaryDirectory directory;
  fs::create_directory(directory / "real");
  fs::create_directory_symlink("real", directory / "link");

  EXPECT_TRUE(throws_with<IoError>("test: opening directory " + (directory / "link").string(),
                                   [&] { Directory("test", directory / "link"); }));
  Directory("test", directory / "link", Directory::Links::kFollow).write_new("a", "");
  EXPECT_THAT(names_in(directory / "real"), ElementsAre("a"));
}

TEST(Directory, NeverReadsThroughALinkNorWaitsForAPipe) {
  const TemporaryDirectory directory;
  const Directory held("test", directory.path());
  write_text(directory / "file", "text");
  fs::create_symlink("file", directory / "link");
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);

  EXPECT_EQ(held.read_if_there("file"), "text");
  EXPECT_EQ(held.read_if_there("file", 2), "te");
  EXPECT_EQ(held.read_if_there("gone"), std::nullopt);
  EXPECT_EQ(held.read_if_there("pipe"), "");
  EXPECT_TRUE(throws_with<IoError>("Too many levels of symbolic links",
                                   [&] { static_cast<void>(held.read_if_there("link")); }));
}

TEST(Directory, ListsItsNamesInOrder) {
  const TemporaryDirectory directory;
  for (const char* name : {"b", ".a", "c"}) write_text(directory / name, "");
  EXPECT_THAT(Directory("test", directory.path()).names(), ElementsAre(".a", "b", "c"));
}

TEST(Directory, MakesANewFileOnlyWhereThereIsNone) {
  const TemporaryDirectory directory;
  const Directory held("test", directory.path());
  held.write_new("file", "first");
  EXPECT_TRUE(
      throws_with<IoError>("test: creating " + (directory / "file").string() + ": File exists",
                           [&] { held.write_new("file", "second"); }));
  EXPECT_EQ(read_text(directory / "file"), "first");

  EXPECT_TRUE(throws_with<IoError>("make room", [&] {
    const FileSizeLimit full(10);
    held.write_new("half", std::string(100, 'x'));
  }));
  EXPECT_THAT(names_in(directory.path()), ElementsAre("file"));
}

TEST(Directory, WritesAFileInPiecesOrLeavesNone) {
  const TemporaryDirectory directory;
  const Directory held("test", directory.path());
  const std::string long_one(5000, 'x');
  const std::string_view pieces[] = {"a", "", long_one, "b"};

  held.write_new("file", pieces);
  EXPECT_EQ(read_text(directory / "file"), "a" + long_one + "b");

  const std::string path = (directory / "other").string();
  EXPECT_TRUE(throws_with<IoError>("test: writing " + path + ": File too large; make room", [&] {
    const FileSizeLimit full(5001);
    held.write_new("other", pieces);
  }));
  EXPECT_THAT(names_in(directory.path()), ElementsAre("file"));
}

TEST(Directory, RemovesAFileADirectoryOrALinkButNotWhatItLeadsTo) {
  const TemporaryDirectory directory;
  const Directory held("test", directory.path());
  fs::create_directory(directory / "full");
  write_text(directory / "full" / "file", "");
  fs::create_directory_symlink("full", directory / "link");
  write_text(directory / "file", "");

  EXPECT_TRUE(held.remove("link"));
  EXPECT_TRUE(held.remove("file"));
  EXPECT_TRUE(held.remove("gone"));
  EXPECT_TRUE(fs::exists(directory / "full" / "file"));
  EXPECT_TRUE(held.remove("full"));
  fs::create_directories(directory / "deep" / "inside");
  EXPECT_FALSE(held.remove("deep"));
  EXPECT_THAT(names_in(directory.path()), ElementsAre("deep"));
}

TEST(Directory, RenamesOrReportsWhyNot) {
  const TemporaryDirectory directory;
  const Directory held("test", directory.path());
  held.write_new("a", "text");
  EXPECT_TRUE(held.rename("a", "b"));
  EXPECT_EQ(read_text(directory / "b"), "text");
  EXPECT_FALSE(held.rename("a", "c"));
  EXPECT_EQ(errno, ENOENT);
}

TEST(StagedDirectory, AppearsWholeOrNotAtAll) {
  const TemporaryDirectory directory;
  const Directory parent("test", directory.path());
  {
    const StagedDirectory aside(parent, ".aside", StagedDirectory::Rights::kByUmask);
    aside.directory().write_new("a", "1");
    EXPECT_THAT(names_in(directory.path()), ElementsAre(".aside"));
  }
  EXPECT_THAT(names_in(directory.path()), IsEmpty());
  {
    StagedDirectory aside(parent, ".aside", StagedDirectory::Rights::kByUmask);
    aside.directory().write_new("a", "1");
    aside.publish_as("set");
  }
  EXPECT_THAT(names_in(directory.path()), ElementsAre("set"));
  EXPECT_EQ(read_text(directory / "set" / "a"), "1");
}

TEST(StagedDirectory, ReplacesTheOldOneAlsoWhereNamesCannotBeExchanged) {
  for (const int error : {0, EINVAL, ENOSYS}) {
    const TemporaryDirectory directory;
    const Directory parent("test", directory.path());
    fs::create_directory(directory / "set");
    write_text(directory / "set" / "old", "");
    exchange_error = error;
    {
      StagedDirectory aside(parent, ".aside", StagedDirectory::Rights::kByUmask);
      aside.directory().write_new("new", "");
      aside.publish_as("set");
    }
    exchange_error = 0;
    EXPECT_THAT(names_in(directory.path()), ElementsAre("set")) << error;
    EXPECT_THAT(names_in(directory / "set"), ElementsAre("new")) << error;
  }
}

TEST(StagedDirectory, ThatCannotReplaceTheOldOneLeavesIt) {
  const TemporaryDirectory directory;
  const Directory parent("test", directory.path());
  fs::create_directory(directory / "set");
  write_text(directory / "set" / "old", "");
  const std::string path = (directory / "set").string();

  EXPECT_TRUE(throws_with<IoError>("test: renaming to " + path + ": Input/output error", [&] {
    StagedDirectory aside(parent, ".aside", StagedDirectory::Rights::kByUmask);
    exchange_error = EIO;
    aside.publish_as("set");
  }));
  exchange_error = 0;
  EXPECT_THAT(names_in(directory.path()), ElementsAre("set"));
  EXPECT_THAT(names_in(directory / "set"), ElementsAre("old"));
}

TEST(StagedDirectory, HasTheRequestedRights) {
  const TemporaryDirectory directory;
  fs::permissions(directory.path(), fs::perms(0750));
  const Directory parent("test", directory.path());
  const mode_t mask = ::umask(0002);
  using enum StagedDirectory::Rights;
  for (const auto& [rights, before, after] :
       {std::tuple(kByUmask, 0775u, 0775u), std::tuple(kOfParent, 0700u, 0750u)}) {
    StagedDirectory aside(parent, ".aside", rights);
    EXPECT_EQ(rights_of(directory / ".aside"), before);
    aside.publish_as("set");
    EXPECT_EQ(rights_of(directory / "set"), after);
  }
  ::umask(mask);
}

// A group's shared folder passes its group on to what is made in it.
TEST(StagedDirectory, KeepsTheGroupBitOfItsParent) {
  const TemporaryDirectory directory;
  fs::permissions(directory.path(), fs::perms(02775));
  const Directory parent("test", directory.path());
  StagedDirectory aside(parent, ".aside", StagedDirectory::Rights::kOfParent);
  aside.directory().write_new("file", "x");

  aside.publish_as("set");

  EXPECT_EQ(unsigned(fs::status(directory / "set").permissions()), 02775u);
}

TEST(StagedDirectory, RefusesANameThatIsTaken) {
  const TemporaryDirectory directory;
  const Directory parent("test", directory.path());
  write_text(directory / "taken", "");
  const std::string path = (directory / "taken").string();
  EXPECT_TRUE(throws_with<IoError>("test: creating directory " + path + ": File exists", [&] {
    StagedDirectory(parent, "taken", StagedDirectory::Rights::kByUmask);
  }));
  EXPECT_TRUE(throws_with<IoError>("test: renaming to " + path + ": Not a directory", [&] {
    StagedDirectory(parent, "aside", StagedDirectory::Rights::kByUmask).publish_as("taken");
  }));
  EXPECT_THAT(names_in(directory.path()), ElementsAre("taken"));
}

TEST(FileLock, HasOneHolderAtATimeAlsoAmongThreads) {
  const TemporaryDirectory directory;
  const Directory held("test", directory.path());
  std::future<FileLock::State> waiting;
  {
    const FileLock first(held, "lock");
    EXPECT_EQ(first.state(), FileLock::State::kHeld);
    EXPECT_EQ(FileLock(held, "lock").state(), FileLock::State::kHeldByAnother);
    waiting = std::async(std::launch::async, [&] {
      FileLock second(held, "lock");
      EXPECT_TRUE(second.wait());
      return second.state();
    });
    EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  }
  EXPECT_EQ(waiting.get(), FileLock::State::kHeld);
  EXPECT_THAT(names_in(directory.path()), ElementsAre("lock"));
}

TEST(FileLock, ReportsAFileSystemWithoutLocks) {
  const TemporaryDirectory directory;
  const Directory held("test", directory.path());
  const std::string path = (directory / "lock").string();
  flock_error = EOPNOTSUPP;
  FileLock lock(held, "lock");
  flock_error = EIO;
  EXPECT_TRUE(throws_with<IoError>("test: locking " + path + ": Input/output error",
                                   [&] { FileLock(held, "lock"); }));
  flock_error = 0;

  EXPECT_EQ(lock.state(), FileLock::State::kUnsupported);
  EXPECT_FALSE(lock.wait());
}

TEST(FileLock, RefusesALink) {
  const TemporaryDirectory directory;
  fs::create_symlink("elsewhere", directory / "lock");
  EXPECT_TRUE(throws_with<IoError>("test: opening " + (directory / "lock").string(),
                                   [&] { FileLock(Directory("test", directory.path()), "lock"); }));
}

}  // namespace
}  // namespace fathom
