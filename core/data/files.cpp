#include "core/data/files.h"

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/base/error.h"

namespace fathom::data {
namespace {

[[noreturn]] void fail_with_errno(std::string_view doing, const std::filesystem::path& path) {
  fail<IoError>("data: ", doing, " ", path.string(), ": ", std::strerror(errno));
}

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags, std::string_view doing)
      : id_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (id_ < 0) fail_with_errno(doing, path);
  }
  ~Descriptor() { ::close(id_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int id() const { return id_; }

 private:
  int id_;
};

size_t size_of(const Descriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(file.id(), &status) != 0) fail_with_errno("reading", path);
  return size_t(status.st_size);
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDONLY, "opening");
  std::string bytes(size_of(file, path), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::read(file.id(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_with_errno("reading", path);
    if (n == 0) break;  // the file has shrunk; whoever reads the bytes will notice
    done += size_t(n);
  }
  bytes.resize(done);
  return bytes;
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  const Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC, "creating");
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.id(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_with_errno("writing", path);
    bytes.remove_prefix(size_t(n));
  }
  if (::fsync(file.id()) != 0) fail_with_errno("writing", path);
}

void sync_directory(const std::filesystem::path& path) {
  const Descriptor directory(path, O_RDONLY | O_DIRECTORY, "opening");
  // Some network file systems do not sync directories and say EINVAL.
  if (::fsync(directory.id()) != 0 && errno != EINVAL) fail_with_errno("writing", path);
}

std::string content_hash(std::string_view bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  std::string hex;
  for (const uint8_t byte : canonical.digest)
    for (const int digit : {byte >> 4, byte & 15}) hex += "0123456789abcdef"[digit];
  return hex;
}

FileLock::FileLock(const std::filesystem::path& path, const std::function<void()>& waiting)
    : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) fail_with_errno("creating the lock", path);
  int mode = LOCK_EX | LOCK_NB;
  while (::flock(descriptor_, mode) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) {
      if (waiting) waiting();
      mode = LOCK_EX;
      continue;
    }
    const int reason = errno;
    ::close(descriptor_);
    errno = reason;
    fail_with_errno("locking", path);
  }
}

FileLock::~FileLock() { ::close(descriptor_); }

}  // namespace fathom::data
