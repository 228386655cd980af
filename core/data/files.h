// The few file operations the data set needs: whole files in and out, content hashes, an exclusive
// lock between processes. Every failure is an IoError with the path and the system's reason.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace fathom::data {

[[nodiscard]] std::string read_file(const std::filesystem::path& path);

// Creates or replaces the file, and returns when it is on disk (fsync).
void write_file(const std::filesystem::path& path, std::string_view bytes);
void sync_directory(const std::filesystem::path& path);

// 128-bit XXH3, as 32 hexadecimal digits.
[[nodiscard]] std::string content_hash(std::string_view bytes);

// Held from construction to destruction, also against threads of this process; the kernel lets go
// of it when the process dies. `path` is created and stays.
class FileLock {
 public:
  // `waiting`, when given, is called once if another holder must be waited for.
  explicit FileLock(const std::filesystem::path& path, const std::function<void()>& waiting = {});
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace fathom::data
