// Files. After a power loss a written file is there in full or not at all: it is written under a
// temporary name, synced and renamed, then its directory is synced, without which a rename is not
// durable. Every call resumes after a signal and after a short transfer.
//
// Errors are IoError, "place: doing PATH: errno text; remedy"; `place` names the caller, such as
// "checkpoint". Functions that return errno are for callers that word their own errors.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fathom {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }

 private:
  int fd_;
};

[[nodiscard]] std::string errno_text(int error);

enum class Access { kReading, kWriting };
[[noreturn]] void fail_io(std::string_view place, std::string_view doing,
                          const std::filesystem::path& path, int error,
                          Access access = Access::kWriting);

inline constexpr size_t kWholeFile = size_t(-1);

// Not open after a failure, with errno set.
[[nodiscard]] FileDescriptor open_to_read(const std::filesystem::path& path);
// Reads to the end, or until `bytes` holds `most`. Returns 0 or errno.
[[nodiscard]] int read_to_end(const FileDescriptor& file, std::string& bytes,
                              size_t most = kWholeFile);
// Reads until `bytes` is full or the file ends; `got` is the number read. Returns 0 or errno.
[[nodiscard]] int read_all(const FileDescriptor& file, std::span<std::byte> bytes, size_t& got);
// Returns 0 or errno.
[[nodiscard]] int write_all(const FileDescriptor& file, std::string_view bytes);

// Whether something is there that gives its bytes only once, to one reader: a pipe, a terminal.
[[nodiscard]] bool is_read_once(const std::filesystem::path& path);

// Reads a whole file. Refuses directories.
[[nodiscard]] std::string read_file(std::string_view place, const std::filesystem::path& path);
// nullopt when there is no such file.
[[nodiscard]] std::optional<std::string> read_if_there(std::string_view place,
                                                       const std::filesystem::path& path);

// Creates or replaces the file atomically: readers see the old bytes or the new ones, also after a
// crash. A symbolic link at `path` is replaced, not followed.
void write_file_durably(std::string_view place, const std::filesystem::path& path,
                        std::string_view bytes);

// The directory that contains `path`, "." for a bare name.
[[nodiscard]] std::filesystem::path parent_of(const std::filesystem::path& path);

// fsync of the directory that contains `path`: makes its name durable. A directory that may be
// entered but not read cannot be synced and is skipped.
void sync_parent(std::string_view place, const std::filesystem::path& path);

// Makes a directory and those above it that are missing, each durable in its parent.
void make_directories(std::string_view place, const std::filesystem::path& path);

// An open directory: names are looked up in it even if its path leads elsewhere by now, and a link
// under a name is never followed.
class Directory {
 public:
  enum class Links { kRefuse, kFollow };
  // Links in the parents are followed; `links` applies to the last component of `path`.
  Directory(std::string_view place, std::filesystem::path path, Links links = Links::kRefuse);

  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const FileDescriptor& descriptor() const { return descriptor_; }
  // For messages.
  [[nodiscard]] std::filesystem::path path_of(const std::string& name) const;

  // Sorted, without "." and "..".
  [[nodiscard]] std::vector<std::string> names() const;
  // Not open after a failure, with errno set, ELOOP for a link. Never blocks on a pipe.
  [[nodiscard]] FileDescriptor open_to_read(const std::string& name) const;
  // nullopt when there is no such file.
  [[nodiscard]] std::optional<std::string> read_if_there(const std::string& name,
                                                         size_t most = kWholeFile) const;

  // Creates a new file and syncs it. After a failure the file is removed.
  void write_new(const std::string& name, std::string_view bytes) const;
  // The same, with the pieces concatenated.
  void write_new(const std::string& name, std::span<const std::string_view> pieces) const;
  // As write_file_durably.
  void replace(const std::string& name, std::string_view bytes) const;
  // Renames a synced entry, then syncs the directory. False, with errno, after a failure.
  [[nodiscard]] bool rename(const std::string& from, const std::string& to) const;
  // fsync of the directory: makes its names durable.
  void sync() const;
  // Removes a file, or a directory with the files in it. False, with errno, if something is left.
  bool remove(const std::string& name) const noexcept;

 private:
  void write_as(const std::string& name, std::span<const std::string_view> pieces,
                const std::filesystem::path& shown) const;

  std::string place_;
  std::filesystem::path path_;
  FileDescriptor descriptor_;
};

// A directory written under a temporary name in its future parent and made visible as a whole by
// one rename. Destruction removes what was not published, or what was replaced.
class StagedDirectory {
 public:
  // kOfParent: private while it is written, then with the permissions of its parent.
  enum class Rights { kByUmask, kOfParent };
  // `parent` must outlive this object; `name` must be free there.
  StagedDirectory(const Directory& parent, std::string name, Rights rights);
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;
  ~StagedDirectory();

  [[nodiscard]] const Directory& directory() const { return *directory_; }
  // The files in it must be synced (write_new). An existing directory is replaced in one step where
  // the file system can exchange two names; else it is first renamed to "<temporary name>-old".
  void publish_as(const std::string& name);

 private:
  const Directory& parent_;
  std::string name_;
  Rights rights_;
  std::optional<Directory> directory_;
};

// An exclusive lock between processes, and between threads of one. The kernel releases it when the
// holder dies; the file is created and stays.
class FileLock {
 public:
  enum class State { kHeld, kHeldByAnother, kUnsupported };
  // Tries once.
  FileLock(const Directory& directory, const std::string& name);
  [[nodiscard]] State state() const { return state_; }
  // Blocks until it is held. False where the file system has no locks.
  [[nodiscard]] bool wait();

 private:
  [[nodiscard]] State lock(int flags) const;

  std::string place_;
  std::filesystem::path path_;
  FileDescriptor file_;
  State state_;
};

// STEM-<UTC time>, or with "-2", "-3" ... after it: a path at which there is nothing.
[[nodiscard]] std::filesystem::path free_path(const std::filesystem::path& stem);

// A unique name: ".tmp-<pid>-<random>".
[[nodiscard]] std::string temporary_name();
inline constexpr std::string_view kTemporaryPrefix = ".tmp-";

}  // namespace fathom
