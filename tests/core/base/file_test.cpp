#include "core/base/file.h"

#include <cerrno>
#include <csignal>
#include <future>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/expect_error.h"
#include "tests/support/temporary_directory.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;
using support::names_in;
using support::read_text;
using support::TemporaryDirectory;
using support::throws_with;
using support::write_text;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// While one lives, no file of this process may grow beyond `bytes`: as a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &old_); }

 private:
  rlimit old_{};
};

unsigned rights_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777;
}

TEST(FileDescriptor, HasOneOwner) {
  FileDescriptor first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(first.is_open());
  const int id = first.get();

  FileDescriptor second(std::move(first));
  EXPECT_EQ(second.get(), id);
  second = FileDescriptor();

  EXPECT_FALSE(second.is_open());
  EXPECT_EQ(::fcntl(id, F_GETFD), -1);
}

TEST(FailIo, NamesPlacePathReasonAndRemedy) {
  const auto text_of = [](int error, Access access) {
    try {
      fail_io("place", "doing", "/a/b", error, access);
    } catch (const IoError& e) {
      return std::string(e.what());
    }
  };
  using enum Access;
  EXPECT_EQ(text_of(ENOSPC, kWriting), "place: doing /a/b: No space left on device; make room");
  EXPECT_EQ(text_of(EDQUOT, kWriting), "place: doing /a/b: Disk quota exceeded; make room");
  EXPECT_EQ(text_of(EFBIG, kWriting), "place: doing /a/b: File too large; make room");
  EXPECT_EQ(text_of(EROFS, kWriting),
            "place: doing /a/b: Read-only file system; is the directory writable?");
  EXPECT_EQ(text_of(EACCES, kWriting),
            "place: doing /a/b: Permission denied; is the directory writable?");
  EXPECT_EQ(text_of(EACCES, kReading),
            "place: doing /a/b: Permission denied; may this user read it?");
  EXPECT_EQ(text_of(EMFILE, kReading),
            "place: doing /a/b: Too many open files; raise the limit of open files (ulimit -n)");
  EXPECT_EQ(text_of(EIO, kReading), "place: doing /a/b: Input/output error");
}

TEST(ReadFile, GivesTheWholeFileOrItsBeginning) {
  const TemporaryDirectory directory;
  const std::string big = std::string(200'000, 'x') + std::string("\0\xFF", 2);
  write_text(directory / "big", big);
  write_text(directory / "empty", "");

  EXPECT_EQ(read_file("test", directory / "big"), big);
  EXPECT_EQ(read_file("test", directory / "big", 10), "xxxxxxxxxx");
  EXPECT_EQ(read_file("test", directory / "big", big.size()), big);
  EXPECT_EQ(read_file("test", directory / "empty"), "");
}

TEST(ReadFile, ReadsWhatHasNoSize) {
  EXPECT_THAT(read_file("test", "/proc/self/stat"), StartsWith(std::to_string(::getpid())));

  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor out(ends[0]);
  FileDescriptor in(ends[1]);
  const std::string sent(100'000, 'p');
  const auto writing = std::async(std::launch::async, [&] {
    const int error = write_all(in, sent);
    in = FileDescriptor();
    return error;
  });
  std::string got;
  EXPECT_EQ(read_to_end(out, got), 0);
  EXPECT_EQ(got, sent);
}

TEST(ReadFile, IsAnIoErrorWithPlaceAndPath) {
  const TemporaryDirectory directory;
  const std::string path = directory.path().string();
  EXPECT_TRUE(
      throws_with<IoError>("test: opening " + path + "/gone: No such file or directory",
                           [&] { static_cast<void>(read_file("test", directory / "gone")); }));
  EXPECT_TRUE(throws_with<IoError>("test: " + path + " is a directory, expected a file", [&] {
    static_cast<void>(read_file("test", directory.path()));
  }));
}

TEST(ReadIfThere, GivesNothingOnlyForAMissingFile) {
  const TemporaryDirectory directory;
  write_text(directory / "a", "text");

  EXPECT_EQ(read_if_there("test", directory / "a"), "text");
  EXPECT_EQ(read_if_there("test", directory / "gone"), std::nullopt);
  EXPECT_TRUE(throws_with<IoError>(
      "Not a directory", [&] { static_cast<void>(read_if_there("test", directory / "a" / "b")); }));
}

TEST(WriteAll, SaysWhyItFailed) {
  const FileDescriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.is_open());
  EXPECT_EQ(write_all(full, "x"), ENOSPC);
  EXPECT_EQ(write_all(full, ""), 0);
}

TEST(WriteFileDurably, CreatesAndReplacesAndLeavesNothingAside) {
  const TemporaryDirectory directory;
  const mode_t mask = ::umask(0027);
  write_file_durably("test", directory / "file", "one");
  ::umask(mask);
  EXPECT_EQ(read_text(directory / "file"), "one");
  EXPECT_EQ(rights_of(directory / "file"), 0640u);

  write_file_durably("test", directory / "file", std::string("t\0o", 3));
  EXPECT_EQ(read_text(directory / "file"), std::string("t\0o", 3));
  EXPECT_THAT(names_in(directory.path()), ElementsAre("file"));
}

TEST(WriteFileDurably, TakesAPathWithoutADirectory) {
  const TemporaryDirectory directory;
  const fs::path before = fs::current_path();
  fs::current_path(directory.path());
  write_file_durably("test", "file", "here");
  fs::current_path(before);
  EXPECT_EQ(read_text(directory / "file"), "here");
}

TEST(WriteFileDurably, ReplacesALinkInsteadOfFollowingIt) {
  const TemporaryDirectory directory;
  write_text(directory / "other", "precious");
  fs::create_symlink("other", directory / "file");
  fs::create_directory(directory / "real");
  fs::create_directory_symlink("real", directory / "linked");

  write_file_durably("test", directory / "file", "new");
  write_file_durably("test", directory / "linked" / "file", "in a linked folder");

  EXPECT_EQ(read_text(directory / "other"), "precious");
  EXPECT_FALSE(fs::is_symlink(directory / "file"));
  EXPECT_EQ(read_text(directory / "real" / "file"), "in a linked folder");
}

TEST(WriteFileDurably, KeepsTheOldFileWhenTheDiskIsFull) {
  const TemporaryDirectory directory;
  write_text(directory / "file", "old");
  const std::string path = (directory / "file").string();

  EXPECT_TRUE(throws_with<IoError>("test: writing " + path + ": File too large; make room", [&] {
    const FileSizeLimit full(1000);
    write_file_durably("test", directory / "file", std::string(5000, 'x'));
  }));

  EXPECT_EQ(read_text(directory / "file"), "old");
  EXPECT_THAT(names_in(directory.path()), ElementsAre("file"));
}

TEST(WriteFileDurably, NamesWhatIsInTheWay) {
  const TemporaryDirectory directory;
  fs::create_directory(directory / "file");
  const std::string path = (directory / "file").string();

  EXPECT_TRUE(throws_with<IoError>("test: renaming to " + path + ": Is a directory",
                                   [&] { write_file_durably("test", directory / "file", "x"); }));
  EXPECT_TRUE(throws_with<IoError>(
      "test: opening directory " + (directory / "gone").string() + ": No such file or directory",
      [&] { write_file_durably("test", directory / "gone" / "file", "x"); }));
  EXPECT_THAT(names_in(directory.path()), ElementsAre("file"));
}

TEST(MakeDirectories, MakesWhatIsMissing) {
  const TemporaryDirectory directory;
  make_directories("test", directory / "a" / "b" / "c");
  make_directories("test", directory / "a" / "b" / "d" / "");
  make_directories("test", directory / "a");
  make_directories("test", ".");
  EXPECT_THAT(names_in(directory / "a" / "b"), ElementsAre("c", "d"));

  write_text(directory / "file", "");
  const std::string path = (directory / "file").string();
  EXPECT_TRUE(throws_with<IoError>("test: creating directory " + path + ": File exists",
                                   [&] { make_directories("test", directory / "file"); }));
  EXPECT_TRUE(throws_with<IoError>("test: creating directory " + path + ": File exists",
                                   [&] { make_directories("test", directory / "file" / "b"); }));
}

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

TEST(Directory, RenamesOrSaysWhyNot) {
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

TEST(StagedDirectory, ReplacesTheOldOneInOneStep) {
  const TemporaryDirectory directory;
  const Directory parent("test", directory.path());
  fs::create_directory(directory / "set");
  write_text(directory / "set" / "old", "");
  {
    StagedDirectory aside(parent, ".aside", StagedDirectory::Rights::kByUmask);
    aside.directory().write_new("new", "");
    aside.publish_as("set");
  }
  EXPECT_THAT(names_in(directory.path()), ElementsAre("set"));
  EXPECT_THAT(names_in(directory / "set"), ElementsAre("new"));
}

TEST(StagedDirectory, HasTheRightsItWasAskedFor) {
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
      second.wait();
      return second.state();
    });
    EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  }
  EXPECT_EQ(waiting.get(), FileLock::State::kHeld);
  EXPECT_THAT(names_in(directory.path()), ElementsAre("lock"));
}

TEST(FileLock, IsNoLink) {
  const TemporaryDirectory directory;
  fs::create_symlink("elsewhere", directory / "lock");
  EXPECT_TRUE(throws_with<IoError>("test: opening " + (directory / "lock").string(),
                                   [&] { FileLock(Directory("test", directory.path()), "lock"); }));
}

TEST(TemporaryName, IsNewEachTime) {
  EXPECT_THAT(temporary_name(), StartsWith(std::string(kTemporaryPrefix)));
  EXPECT_NE(temporary_name(), temporary_name());
}

}  // namespace
}  // namespace fathom
