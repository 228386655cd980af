// Files. What is written is there after a power loss, or was never there: written aside, synced,
// renamed, and then the folder synced, for a rename is durable only with its folder. Every call
// goes on after a signal and after a short transfer.
//
// Errors are IoError, "place: doing PATH: errno text; remedy"; `place` says who was at work:
// "checkpoint". Functions that return errno are for callers with words of their own.
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

// Not open when that failed; errno says why.
[[nodiscard]] FileDescriptor open_to_read(const std::filesystem::path& path);
// Reads on to the end, or until `bytes` holds `most`. 0 or errno.
[[nodiscard]] int read_to_end(const FileDescriptor& file, std::string& bytes,
                              size_t most = kWholeFile);
// Reads until `bytes` is full or the file ends; `got` is how many came. 0 or errno.
[[nodiscard]] int read_all(const FileDescriptor& file, std::span<std::byte> bytes, size_t& got);
// 0 or errno.
[[nodiscard]] int write_all(const FileDescriptor& file, std::string_view bytes);

// The whole of a file. Refuses directories.
[[nodiscard]] std::string read_file(std::string_view place, const std::filesystem::path& path);
// Nothing when there is no such file.
[[nodiscard]] std::optional<std::string> read_if_there(std::string_view place,
                                                       const std::filesystem::path& path);

// Creates or replaces the file: readers, and whoever comes after a crash, see the old bytes or the
// new ones. A link in the place of the file is replaced, not followed.
void write_file_durably(std::string_view place, const std::filesystem::path& path,
                        std::string_view bytes);

// The folder that holds `path`, "." for a name alone.
[[nodiscard]] std::filesystem::path parent_of(const std::filesystem::path& path);

// fsync of the folder that holds `path`: makes its name durable. A folder that may be entered but
// not read cannot be synced, and is not.
void sync_parent(std::string_view place, const std::filesystem::path& path);

// Makes a directory and those above it that are missing, each durable in its parent.
void make_directories(std::string_view place, const std::filesystem::path& path);

// A directory held open: a name is looked up in that very directory, whatever its path means by
// now, and a link under a name is never followed.
class Directory {
 public:
  enum class Links { kRefuse, kFollow };
  // Links in the parents are followed; `links` is about the last name of `path`.
  Directory(std::string_view place, std::filesystem::path path, Links links = Links::kRefuse);

  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const FileDescriptor& descriptor() const { return descriptor_; }
  // For messages.
  [[nodiscard]] std::filesystem::path path_of(const std::string& name) const;

  // Sorted, without "." and "..".
  [[nodiscard]] std::vector<std::string> names() const;
  // Not open when that failed; errno says why, ELOOP for a link. Never waits for a pipe.
  [[nodiscard]] FileDescriptor open_to_read(const std::string& name) const;
  // Nothing when there is no such file.
  [[nodiscard]] std::optional<std::string> read_if_there(const std::string& name,
                                                         size_t most = kWholeFile) const;

  // Makes a file that is not there yet, and syncs it. After a failure it is gone.
  void write_new(const std::string& name, std::string_view bytes) const;
  // The same of bytes that lie in pieces, one after the other.
  void write_new(const std::string& name, std::span<const std::string_view> pieces) const;
  // As write_file_durably.
  void replace(const std::string& name, std::string_view bytes) const;
  // Renames what is synced already, and syncs the directory. False, with errno, when that failed.
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

// A directory written aside, in the folder where it will be, and made visible as a whole by one
// rename. Destruction removes what was not published, or what was replaced.
class StagedDirectory {
 public:
  // kOfParent: nobody else may enter while it is written; then it gets the rights of its parent.
  enum class Rights { kByUmask, kOfParent };
  // `parent` must outlive this object; `name` must be free there.
  StagedDirectory(const Directory& parent, std::string name, Rights rights);
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;
  ~StagedDirectory();

  [[nodiscard]] const Directory& directory() const { return *directory_; }
  // The files in it must be synced (write_new). A directory that has the name is replaced, where
  // the file system can exchange two names in one step; else it steps aside as "<name here>-old".
  void publish_as(const std::string& name);

 private:
  const Directory& parent_;
  std::string name_;
  Rights rights_;
  std::optional<Directory> directory_;
};

// An exclusive lock between processes, and between threads of one. The kernel lets go of it when
// the holder dies; the file is created and stays.
class FileLock {
 public:
  enum class State { kHeld, kHeldByAnother, kUnsupported };
  // Tries once.
  FileLock(const Directory& directory, const std::string& name);
  [[nodiscard]] State state() const { return state_; }
  // Until it is held. IoError where the file system has no locks.
  void wait();

 private:
  [[nodiscard]] State lock(int flags) const;

  std::string place_;
  std::filesystem::path path_;
  FileDescriptor file_;
  State state_;
};

// A name that nobody else has: ".tmp-<pid>-<random>".
[[nodiscard]] std::string temporary_name();
inline constexpr std::string_view kTemporaryPrefix = ".tmp-";

}  // namespace fathom
