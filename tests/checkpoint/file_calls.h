// The system calls by which a save changes files, watched by a test: it can look, fail a call or
// end the process at any of them. For tests linked with file_calls.cpp.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::checkpoint {

struct FileCall {
  std::string_view function;  // "mkdirat", "write", "fsync", "renameat" or "unlinkat"
  std::string name;           // of what is made or removed, or the new one of a rename; else ""
};

// Called before a call is made, on the thread that makes it; it is not called for what it does
// itself. 0: go on; else the call is not made and fails with this errno.
using FileCallWatch = std::function<int(const FileCall&)>;

// Watches from now on until the end of its life. One at a time.
class FileCallWatcher {
 public:
  explicit FileCallWatcher(FileCallWatch watch);
  FileCallWatcher(const FileCallWatcher&) = delete;
  FileCallWatcher& operator=(const FileCallWatcher&) = delete;
  ~FileCallWatcher();
};

}  // namespace fathom::checkpoint
