#include "core/base/file.h"

#include <cerrno>
#include <future>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/expect_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_directory.h"

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
using ::testing::StartsWith;

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

TEST(ReadFile, GivesTheWholeFile) {
  const TemporaryDirectory directory;
  const std::string big = std::string(200'000, 'x') + std::string("\0\xFF", 2);
  write_text(directory / "big", big);
  write_text(directory / "empty", "");

  EXPECT_EQ(read_file("test", directory / "big"), big);
  EXPECT_EQ(read_file("test", directory / "empty"), "");
}

TEST(ReadToEnd, StopsAtTheGivenLimit) {
  const TemporaryDirectory directory;
  write_text(directory / "file", std::string(10'000, 'x'));
  for (const size_t most : {0, 1, 4096, 9'999, 10'000, 10'001}) {
    std::string got = "before";
    EXPECT_EQ(read_to_end(open_to_read(directory / "file"), got, most), 0);
    EXPECT_EQ(got.size(), std::min<size_t>(most, 10'000));
  }
  std::string got;
  EXPECT_EQ(read_to_end(FileDescriptor(), got), EBADF);
}

TEST(ReadFile, ReadsAFileWithoutASize) {
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

TEST(IsReadOnce, APipeAndATerminalAreButNoFile) {
  const support::TemporaryDirectory dir;
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  support::write_text(dir / "file", "text");
  std::filesystem::create_symlink("pipe", dir / "link");
  EXPECT_TRUE(is_read_once(dir / "pipe"));
  EXPECT_TRUE(is_read_once(dir / "link"));
  EXPECT_TRUE(is_read_once("/dev/null"));
  for (const auto& path : {dir / "file", dir.path(), dir / "nothing"})
    EXPECT_FALSE(is_read_once(path)) << path;
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

TEST(WriteAll, ReturnsTheErrno) {
  const FileDescriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.is_open());
  EXPECT_EQ(write_all(full, "x"), ENOSPC);
  EXPECT_EQ(write_all(full, ""), 0);
}

TEST(WriteFileDurably, CreatesAndReplacesAndLeavesNoTemporaryFile) {
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

TEST(WriteFileDurably, LetsAGroupWriteWhereTheUmaskDoes) {
  const TemporaryDirectory directory;
  const mode_t mask = ::umask(0002);
  write_file_durably("test", directory / "file", "one");
  ::umask(mask);
  EXPECT_EQ(rights_of(directory / "file"), 0664u);
}

TEST(WriteFileDurably, TakesAPathWithoutADirectory) {
  const TemporaryDirectory directory;
  const fs::path before = fs::current_path();
  fs::current_path(directory.path());
  write_file_durably("test", "file", "here");
  EXPECT_TRUE(throws_with<IoError>("test: writing full: File too large", [&] {
    const FileSizeLimit full(0);
    write_file_durably("test", "full", "x");
  }));
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
  EXPECT_TRUE(throws_with<IoError>("test: creating directory " + path + ": Not a directory",
                                   [&] { make_directories("test", directory / "file"); }));
  EXPECT_TRUE(throws_with<IoError>("test: creating directory " + path + ": Not a directory",
                                   [&] { make_directories("test", directory / "file" / "b"); }));
}

TEST(SyncParent, NamesAFolderThatIsNotThere) {
  const TemporaryDirectory directory;
  sync_parent("test", directory / "file");
  EXPECT_TRUE(throws_with<IoError>(
      "test: opening directory " + (directory / "gone").string() + ": No such file or directory",
      [&] { sync_parent("test", directory / "gone" / "file"); }));
}

TEST(TemporaryName, IsNewEachTime) {
  EXPECT_THAT(temporary_name(), StartsWith(std::string(kTemporaryPrefix)));
  EXPECT_NE(temporary_name(), temporary_name());
}

}  // namespace
}  // namespace fathom
