#include "checkpoint/files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"

namespace fathom::checkpoint {
namespace {

std::string errno_text(int error) { return std::generic_category().message(error); }

FileDescriptor open_regular(const FileDescriptor& directory,
                            const std::filesystem::path& directory_path, const std::string& name,
                            int64_t& size) {
  // O_NONBLOCK: a pipe planted under the name must not make us wait.
  FileDescriptor file(
      ::openat(directory.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) {
    const int error = errno;
    fail<CheckpointError>("checkpoint ", directory_path.string(), ": ", name,
                          error == ELOOP    ? " is a symbolic link, which is never followed"
                          : error == ENOENT ? " is missing"
                                            : " cannot be opened: " + errno_text(error));
  }
  struct stat status {};
  require<CheckpointError>(::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode),
                           "checkpoint ", directory_path.string(), ": ", name,
                           " is not a regular file");
  size = status.st_size;
  return file;
}

void write_all(const FileDescriptor& file, const std::filesystem::path& path,
               std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::write(file.get(), bytes.data(), std::min<size_t>(bytes.size(), size_t{64} << 20));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_io("writing", path, errno);
    if (written == 0) fail_io("writing", path, ENOSPC);
    bytes = bytes.subspan(size_t(written));
  }
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

void fail_io(std::string_view doing, const std::filesystem::path& path, int error) {
  const char* remedy = error == ENOSPC || error == EDQUOT || error == EFBIG ? "; make room"
                       : error == EACCES || error == EPERM || error == EROFS
                           ? "; is the directory writable?"
                           : "";
  fail<IoError>("checkpoint: ", doing, " ", path.string(), ": ", errno_text(error), remedy);
}

FileDescriptor open_directory(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) fail_io("opening directory", path, errno);
  return FileDescriptor(fd);
}

std::vector<std::string> list_names(const std::filesystem::path& path) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error) fail_io("listing", path, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

void write_new_file(const FileDescriptor& directory, const std::filesystem::path& directory_path,
                    const std::string& name, std::span<const std::byte> bytes) {
  const std::filesystem::path path = directory_path / name;
  FileDescriptor file(::openat(directory.get(), name.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (file.get() < 0) fail_io("creating", path, errno);
  write_all(file, path, bytes);
  if (::fsync(file.get()) != 0) fail_io("syncing", path, errno);
}

void sync_directory(const FileDescriptor& directory, const std::filesystem::path& path) {
  // EINVAL: some network file systems cannot sync a directory and need not.
  if (::fsync(directory.get()) != 0 && errno != EINVAL) fail_io("syncing", path, errno);
}

void replace_file(const FileDescriptor& directory, const std::filesystem::path& directory_path,
                  const std::string& name, std::string_view text) {
  const std::string aside = temporary_name();
  try {
    write_new_file(directory, directory_path, aside, std::as_bytes(std::span(text)));
    if (::renameat(directory.get(), aside.c_str(), directory.get(), name.c_str()) != 0)
      fail_io("renaming to", directory_path / name, errno);
  } catch (...) {
    ::unlinkat(directory.get(), aside.c_str(), 0);
    throw;
  }
  sync_directory(directory, directory_path);
}

int64_t regular_file_size(const FileDescriptor& directory,
                          const std::filesystem::path& directory_path, const std::string& name) {
  int64_t size = 0;
  static_cast<void>(open_regular(directory, directory_path, name, size));
  return size;
}

Bytes read_file(const FileDescriptor& directory, const std::filesystem::path& directory_path,
                const std::string& name, int64_t size) {
  int64_t actual = 0;
  const FileDescriptor file = open_regular(directory, directory_path, name, actual);
  require<CheckpointError>(actual == size, "checkpoint ", directory_path.string(), ": ", name,
                           " has ", actual, " bytes, expected ", size, "; it is damaged");
  // A sparse file may claim any size; reading it would only end in the kernel's killer.
  const int64_t memory = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  require<CheckpointError>(size <= memory, "checkpoint ", directory_path.string(), ": ", name,
                           " has ", size, " bytes, this machine's memory ", memory);
  Bytes bytes(static_cast<size_t>(size));
  std::span<std::byte> rest = bytes.span();
  while (!rest.empty()) {
    const ssize_t got =
        ::read(file.get(), rest.data(), std::min<size_t>(rest.size(), size_t{64} << 20));
    if (got < 0 && errno == EINTR) continue;
    require<CheckpointError>(got > 0, "checkpoint ", directory_path.string(), ": reading ", name,
                             ": ", got == 0 ? "it became shorter" : errno_text(errno));
    rest = rest.subspan(size_t(got));
  }
  return bytes;
}

bool remove_tree(const FileDescriptor& parent, const std::string& name) noexcept {
  const int fd =
      ::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return ::unlinkat(parent.get(), name.c_str(), 0) == 0 || errno == ENOENT;
  DIR* stream = ::fdopendir(fd);
  if (stream == nullptr) {
    ::close(fd);
    return false;
  }
  while (const dirent* entry = ::readdir(stream))
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
      ::unlinkat(fd, entry->d_name, 0);
  ::closedir(stream);
  return ::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) == 0;
}

std::string temporary_name() {
  std::array<char, 17> digits{};
  uint64_t bits = random_bits();
  for (size_t i = 0; i < 16; ++i, bits >>= 4) digits[i] = "0123456789abcdef"[bits & 15];
  return std::string(kTemporaryPrefix) + std::to_string(::getpid()) + "-" + digits.data();
}

uint64_t random_bits() {
  uint64_t bits = 0;
  if (::getentropy(&bits, sizeof bits) != 0) fail_io("reading", "the system's generator", errno);
  return bits;
}

}  // namespace fathom::checkpoint
