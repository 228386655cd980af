#include "core/base/file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/system.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostAtOnce = size_t{64} << 20;

const char* remedy_of(int error, Access access) {
  if (error == EMFILE || error == ENFILE) return "; raise the limit of open files (ulimit -n)";
  const bool refused = error == EACCES || error == EPERM;
  if (access == Access::kReading) return refused ? "; may this user read it?" : "";
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) return "; make room";
  return refused || error == EROFS ? "; is the directory writable?" : "";
}

struct CloseStream {
  void operator()(DIR* stream) const { ::closedir(stream); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseStream>;

// Null, with errno, when it is not a directory or cannot be read.
DirectoryStream open_stream(int parent, const char* name) {
  const int fd = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return nullptr;
  DirectoryStream stream(::fdopendir(fd));
  if (!stream) ::close(fd);
  return stream;
}

// The next name other than "." and ".."; null at the end.
const char* next_name(const DirectoryStream& stream) {
  while (const dirent* entry = ::readdir(stream.get()))
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
      return entry->d_name;
  return nullptr;
}

void sync_folder(const FileDescriptor& folder, std::string_view place, const fs::path& path) {
  // EINVAL: some network file systems cannot sync a directory and need not.
  if (::fsync(folder.get()) != 0 && errno != EINVAL) fail_io(place, "syncing", path, errno);
}

std::string read_opened(const FileDescriptor& file, std::string_view place, const fs::path& path,
                        size_t most) {
  if (!file.is_open()) fail_io(place, "opening", path, errno, Access::kReading);
  std::string bytes;
  const int error = read_to_end(file, bytes, most);
  require<IoError>(error != EISDIR, place, ": ", path.string(), " is a directory, expected a file");
  if (error != 0) fail_io(place, "reading", path, error, Access::kReading);
  return bytes;
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

std::string errno_text(int error) { return std::generic_category().message(error); }

void fail_io(std::string_view place, std::string_view doing, const fs::path& path, int error,
             Access access) {
  fail<IoError>(place, ": ", doing, " ", path.string(), ": ", errno_text(error),
                remedy_of(error, access));
}

FileDescriptor open_to_read(const fs::path& path) {
  return FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

int read_all(const FileDescriptor& file, std::span<std::byte> bytes, size_t& got) {
  for (got = 0; got < bytes.size();) {
    const ssize_t n =
        ::read(file.get(), bytes.data() + got, std::min(bytes.size() - got, kMostAtOnce));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) break;
    got += size_t(n);
  }
  return 0;
}

int read_to_end(const FileDescriptor& file, std::string& bytes, size_t most) {
  // Only a hint: files in /proc report 0, and a growing file may have more. One byte more than the
  // size, so that the end is found without another buffer.
  struct stat status {};
  const bool is_known = ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
  bytes.clear();
  size_t room = std::max<size_t>(is_known ? size_t(status.st_size) + 1 : 0, 4096);
  for (size_t done = 0;; room = 2 * done) {
    bytes.resize(std::min(most, room));
    size_t got = 0;
    const int error = read_all(file, std::as_writable_bytes(std::span(bytes)).subspan(done), got);
    done += got;
    if (error == 0 && done == bytes.size() && done < most) continue;
    bytes.resize(done);
    return error;
  }
}

int write_all(const FileDescriptor& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), std::min(bytes.size(), kMostAtOnce));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return ENOSPC;
    bytes.remove_prefix(size_t(written));
  }
  return 0;
}

bool is_read_once(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

std::string read_file(std::string_view place, const fs::path& path) {
  return read_opened(open_to_read(path), place, path, kWholeFile);
}

std::optional<std::string> read_if_there(std::string_view place, const fs::path& path) {
  const FileDescriptor file = open_to_read(path);
  if (!file.is_open() && errno == ENOENT) return std::nullopt;
  return read_opened(file, place, path, kWholeFile);
}

void write_file_durably(std::string_view place, const fs::path& path, std::string_view bytes) {
  Directory(place, parent_of(path), Directory::Links::kFollow)
      .replace(path.filename().string(), bytes);
}

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void sync_parent(std::string_view place, const fs::path& path) {
  const fs::path parent = parent_of(path);
  const FileDescriptor folder(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open() && errno == EACCES) return;
  if (!folder.is_open()) fail_io(place, "opening directory", parent, errno, Access::kReading);
  sync_folder(folder, place, parent);
}

void make_directories(std::string_view place, const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return;
  const fs::path parent = parent_of(path);
  if (parent != path) make_directories(place, parent);
  if (::mkdir(path.c_str(), 0777) != 0) {
    const int error = errno;
    if (error == EEXIST && fs::is_directory(path, ignored)) return;  // another process made it
    fail_io(place, "creating directory", path, error == EEXIST ? ENOTDIR : error);
  }
  sync_parent(place, path);
}

Directory::Directory(std::string_view place, fs::path path, Links links)
    : place_(place),
      path_(std::move(path)),
      descriptor_(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC |
                                            (links == Links::kRefuse ? O_NOFOLLOW : 0))) {
  if (!descriptor_.is_open()) fail_io(place_, "opening directory", path_, errno, Access::kReading);
}

fs::path Directory::path_of(const std::string& name) const {
  return path_ == "." ? fs::path(name) : path_ / name;
}

std::vector<std::string> Directory::names() const {
  const DirectoryStream stream = open_stream(descriptor_.get(), ".");
  if (!stream) fail_io(place_, "listing", path_, errno, Access::kReading);
  std::vector<std::string> names;
  errno = 0;
  while (const char* name = next_name(stream)) names.emplace_back(name);
  if (errno != 0) fail_io(place_, "listing", path_, errno, Access::kReading);
  std::sort(names.begin(), names.end());
  return names;
}

FileDescriptor Directory::open_to_read(const std::string& name) const {
  return FileDescriptor(
      ::openat(descriptor_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

std::optional<std::string> Directory::read_if_there(const std::string& name, size_t most) const {
  const FileDescriptor file = open_to_read(name);
  if (!file.is_open() && errno == ENOENT) return std::nullopt;
  return read_opened(file, place_, path_of(name), most);
}

void Directory::write_as(const std::string& name, std::span<const std::string_view> pieces,
                         const fs::path& shown) const {
  const FileDescriptor file(::openat(descriptor_.get(), name.c_str(),
                                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file.is_open()) fail_io(place_, "creating", shown, errno);
  const char* doing = "writing";
  int error = 0;
  for (size_t i = 0; error == 0 && i < pieces.size(); ++i) error = write_all(file, pieces[i]);
  if (error == 0 && ::fsync(file.get()) != 0) {
    doing = "syncing";
    error = errno;
  }
  if (error == 0) return;
  ::unlinkat(descriptor_.get(), name.c_str(), 0);
  fail_io(place_, doing, shown, error);
}

void Directory::write_new(const std::string& name, std::string_view bytes) const {
  write_new(name, std::span(&bytes, 1));
}

void Directory::write_new(const std::string& name, std::span<const std::string_view> pieces) const {
  write_as(name, pieces, path_of(name));
}

void Directory::replace(const std::string& name, std::string_view bytes) const {
  const std::string aside = temporary_name();
  write_as(aside, std::span(&bytes, 1), path_of(name));
  if (::renameat(descriptor_.get(), aside.c_str(), descriptor_.get(), name.c_str()) != 0) {
    const int error = errno;
    ::unlinkat(descriptor_.get(), aside.c_str(), 0);
    fail_io(place_, "renaming to", path_of(name), error);
  }
  sync();
}

bool Directory::rename(const std::string& from, const std::string& to) const {
  if (::renameat(descriptor_.get(), from.c_str(), descriptor_.get(), to.c_str()) != 0) return false;
  sync();
  return true;
}

void Directory::sync() const { sync_folder(descriptor_, place_, path_); }

bool Directory::remove(const std::string& name) const noexcept {
  const DirectoryStream stream = open_stream(descriptor_.get(), name.c_str());
  if (!stream) return ::unlinkat(descriptor_.get(), name.c_str(), 0) == 0 || errno == ENOENT;
  while (const char* entry = next_name(stream)) ::unlinkat(::dirfd(stream.get()), entry, 0);
  return ::unlinkat(descriptor_.get(), name.c_str(), AT_REMOVEDIR) == 0;
}

StagedDirectory::StagedDirectory(const Directory& parent, std::string name, Rights rights)
    : parent_(parent), name_(std::move(name)), rights_(rights) {
  const fs::path path = parent_.path_of(name_);
  if (::mkdirat(parent_.descriptor().get(), name_.c_str(),
                rights == Rights::kOfParent ? 0700 : 0777) != 0)
    fail_io(parent_.place(), "creating directory", path, errno);
  try {
    directory_.emplace(parent_.place(), path);
  } catch (...) {
    parent_.remove(name_);
    throw;
  }
}

StagedDirectory::~StagedDirectory() { parent_.remove(name_); }

void StagedDirectory::publish_as(const std::string& name) {
  const int folder = parent_.descriptor().get();
  const auto fail_to_rename = [&](int error) {
    fail_io(parent_.place(), "renaming to", parent_.path_of(name), error);
  };
  if (rights_ == Rights::kOfParent) {
    struct stat status {};
    if (::fstat(folder, &status) != 0 ||
        ::fchmod(directory_->descriptor().get(), status.st_mode & (0777 | S_ISGID)) != 0)
      fail_io(parent_.place(), "setting the rights of", directory_->path(), errno);
  }
  directory_->sync();
  if (parent_.rename(name_, name)) return;
  if (errno != EEXIST && errno != ENOTEMPTY) fail_to_rename(errno);
  if (::renameat2(folder, name_.c_str(), folder, name.c_str(), RENAME_EXCHANGE) == 0)
    return parent_.sync();
  if (errno != EINVAL && errno != ENOSYS) fail_to_rename(errno);
  // Without an atomic exchange (some network file systems) the old one is renamed first.
  const std::string old = name_ + "-old";
  if (!parent_.rename(name, old))
    fail_io(parent_.place(), "moving aside", parent_.path_of(name), errno);
  if (!parent_.rename(name_, name)) {
    const int error = errno;
    static_cast<void>(parent_.rename(old, name));
    fail_to_rename(error);
  }
  parent_.remove(old);
}

FileLock::FileLock(const Directory& directory, const std::string& name)
    : place_(directory.place()),
      path_(directory.path_of(name)),
      file_(::openat(directory.descriptor().get(), name.c_str(),
                     O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666)) {
  if (!file_.is_open()) fail_io(place_, "opening", path_, errno);
  state_ = lock(LOCK_EX | LOCK_NB);
}

bool FileLock::wait() {
  if (state_ == State::kHeldByAnother) state_ = lock(LOCK_EX);
  return state_ == State::kHeld;
}

FileLock::State FileLock::lock(int flags) const {
  while (::flock(file_.get(), flags) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return State::kHeldByAnother;
    constexpr int kNotSupported = 524;  // the kernel's ENOTSUPP, which NFS returns
    constexpr std::array kNoLocks = {ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL, kNotSupported};
    if (std::find(kNoLocks.begin(), kNoLocks.end(), errno) != kNoLocks.end())
      return State::kUnsupported;
    fail_io(place_, "locking", path_, errno);
  }
  return State::kHeld;
}

fs::path free_path(const fs::path& stem) {
  const std::string first = stem.string() + "-" + utc_stamp();
  fs::path path = first;
  for (int i = 2; fs::exists(fs::symlink_status(path)); ++i) path = fmt::format("{}-{}", first, i);
  return path;
}

std::string temporary_name() {
  return fmt::format("{}{}-{:016x}", kTemporaryPrefix, ::getpid(), random_bits());
}

}  // namespace fathom
