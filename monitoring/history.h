// The run's own record, one JSON object per line: metrics.jsonl, layers.jsonl, events.jsonl. Lines
// are only ever appended. A resume appends a marker that supersedes the lines it will redo; readers
// get the lines that count from read_effective().
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "monitoring/json.h"

namespace fathom::monitoring {

// One process at a time writes a file (the run lock sees to it). All errors are IoError with the
// path; after one the file holds whole lines only and append() may be tried again.
class JsonlWriter {
 public:
  // Opens for appending, or creates. A torn last line, left by a crash, is cut off.
  explicit JsonlWriter(std::filesystem::path path);

  // In the hands of the operating system on return: it outlives the process, not the machine.
  void append(const Object& line);
  // Appends {"marker":"resumed","step":S}: earlier lines with "step" above S no longer count.
  void rewind_to(int64_t step);
  // Waits until all lines that were there at the call are on disk; called before a checkpoint that
  // counts on them. From any thread, beside append(): it reads nothing that append() changes.
  void sync() const;

 private:
  void repair_torn_line();
  [[noreturn]] void fail_with(const std::string& doing, int error) const;

  std::filesystem::path path_;
  FileDescriptor file_;
  int64_t size_ = 0;  // bytes, all of them whole lines
};

// The lines as an uninterrupted run would have written them: without redone steps (the last attempt
// counts), markers and a torn last line. A missing file is IoError, a line that is no JSON object
// DataError with its number.
[[nodiscard]] std::vector<std::string> read_effective(const std::filesystem::path& path);

}  // namespace fathom::monitoring
