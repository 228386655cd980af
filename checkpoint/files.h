// Files as checkpoints need them: named relative to a held directory, links never followed, every
// write forced to disk, every failure an error with path and errno text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fathom::checkpoint {

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

 private:
  int fd_;
};

// Bytes without the cost of zeroing them first.
class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(size_t size)
      : data_(std::make_unique_for_overwrite<std::byte[]>(size)), size_(size) {}
  [[nodiscard]] std::span<std::byte> span() { return {data_.get(), size_}; }
  [[nodiscard]] std::span<const std::byte> span() const { return {data_.get(), size_}; }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  std::unique_ptr<std::byte[]> data_;
  size_t size_ = 0;
};

// Throws IoError "checkpoint: <doing> <path>: <errno text>".
[[noreturn]] void fail_io(std::string_view doing, const std::filesystem::path& path, int error);

// Follows links in the parents only. IoError.
[[nodiscard]] FileDescriptor open_directory(const std::filesystem::path& path);

// Names in a directory, sorted, without "." and "..". IoError.
[[nodiscard]] std::vector<std::string> list_names(const std::filesystem::path& path);

// Makes a new file, writes and fsyncs it. IoError; also when something of that name exists.
void write_new_file(const FileDescriptor& directory, const std::filesystem::path& directory_path,
                    const std::string& name, std::span<const std::byte> bytes);

// fsync of a directory: makes its names durable. IoError.
void sync_directory(const FileDescriptor& directory, const std::filesystem::path& path);

// Written aside, then renamed over `name`: readers see the old text or the new one. IoError.
void replace_file(const FileDescriptor& directory, const std::filesystem::path& directory_path,
                  const std::string& name, std::string_view text);

// Size of a regular file that is no link. CheckpointError.
[[nodiscard]] int64_t regular_file_size(const FileDescriptor& directory,
                                        const std::filesystem::path& directory_path,
                                        const std::string& name);

// The whole of a regular file that is no link and has `size` bytes. CheckpointError.
[[nodiscard]] Bytes read_file(const FileDescriptor& directory,
                              const std::filesystem::path& directory_path, const std::string& name,
                              int64_t size);

// Removes a directory and the files in it, following no link. False if something is left.
bool remove_tree(const FileDescriptor& parent, const std::string& name) noexcept;

// A name nobody else has: ".tmp-<pid>-<random>".
[[nodiscard]] std::string temporary_name();
inline constexpr std::string_view kTemporaryPrefix = ".tmp-";

// 64 bits from the system's generator.
[[nodiscard]] uint64_t random_bits();

}  // namespace fathom::checkpoint
