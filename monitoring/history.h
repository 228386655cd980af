// The histories of a run, one JSON object per line: metrics.jsonl, layers.jsonl, events.jsonl.
// Lines are only appended. A resume appends a marker that supersedes the lines it will redo;
// readers get the lines that count from read_effective().
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "monitoring/json.h"

namespace fathom::monitoring {

// One process at a time writes a file (the run lock ensures it). All errors are IoError with the
// path; after one the file holds whole lines only and append() may be tried again.
class JsonlWriter {
 public:
  // Opens for appending, or creates. A torn last line, left by a crash, is truncated.
  explicit JsonlWriter(std::filesystem::path path);

  // Written to the operating system on return: it survives a crash of the process, not of the
  // machine.
  void append(const Object& line);
  // Appends {"marker":"resumed","step":S}: earlier lines with "step" above S no longer count.
  void rewind_to(int64_t step);
  // Waits until all lines appended before the call are on disk; called before a checkpoint that
  // relies on them. From any thread, concurrently with append(), whose state it does not read.
  void sync() const;

 private:
  void repair_torn_line();
  [[noreturn]] void fail_with(const std::string& doing, int error) const;

  std::filesystem::path path_;
  FileDescriptor file_;
  int64_t size_ = 0;  // bytes, all of them whole lines
};

// The "step" of the last whole line, 0 where there is no such file, line or member.
[[nodiscard]] int64_t last_step(const std::filesystem::path& path);

// The lines as an uninterrupted run would have written them: without redone steps (the last attempt
// counts), markers and a torn last line. A missing file is IoError, a line that is not a JSON
// object DataError with its number.
[[nodiscard]] std::vector<std::string> read_effective(const std::filesystem::path& path);

}  // namespace fathom::monitoring
