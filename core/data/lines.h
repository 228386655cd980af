// Text files as lines: plain or gzip, split on LF and on nothing else, so that U+2028, a lone CR or
// a NUL can never shift one side of a corpus against the other. Every line is checked once and
// carries its fault, if any; `corpus.h` decides what to do about it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::data {

// A longer line is not a sentence and is never tokenized.
inline constexpr int64_t kLongestLineBytes = int64_t{1} << 20;

enum class LineFault : uint8_t {
  kNone,
  kInvalidUtf8,
  kCarriageReturn,  // CRLF line end
  kNulByte,
  kTooLong,  // over kLongestLineBytes
};

// The reason under which a line with this fault is counted: "invalid_utf8", "too_long", ...
[[nodiscard]] std::string_view reason(LineFault fault);

// Only ASCII white space.
[[nodiscard]] bool is_blank(std::string_view line);

// A line that may be tokenized, for text that must keep its number of lines: a CR at the end is
// removed, a NUL becomes a space, an invalid byte U+FFFD, a line over the limit is truncated.
[[nodiscard]] std::string repaired(std::string_view line);

// A text in memory. A last line without LF counts; the empty rest after a final LF does not.
class Text {
 public:
  // `name` is for messages. A UTF-8 byte order mark at the start is removed.
  Text(std::string name, std::string bytes);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int64_t size() const { return int64_t(faults_.size()); }
  [[nodiscard]] std::string_view line(int64_t i) const;  // without its LF
  [[nodiscard]] LineFault fault(int64_t i) const { return faults_[size_t(i)]; }
  [[nodiscard]] bool had_byte_order_mark() const { return skipped_bytes_ > 0; }
  [[nodiscard]] std::string_view bytes() const { return bytes_; }  // without the mark

  // "NAME:LINE:COLUMN: what is wrong (byte OFFSET of the file)", lines and columns from 1, the
  // offset from 0. Only for a line with a fault.
  [[nodiscard]] std::string describe_fault(int64_t i) const;

 private:
  std::string name_;
  std::string bytes_;
  int64_t skipped_bytes_ = 0;
  std::vector<int64_t> begin_;  // of each line, and one past the end
  std::vector<LineFault> faults_;
};

// `path`, or else `path` with ".gz" added. DataError when there is neither.
[[nodiscard]] std::filesystem::path find_text(const std::filesystem::path& path);

// What the bytes of a file are if they are certainly no UTF-8 text, and how they become one: "is
// UTF-16 (...); convert it: iconv ...". Empty: they may be text.
[[nodiscard]] std::string describe_foreign_bytes(std::string_view bytes);

// Reads find_text(path); a name ending in .gz is decompressed. DataError for a damaged gzip file
// and for bytes that are certainly no text, IoError when the file cannot be read.
[[nodiscard]] Text read_text(const std::filesystem::path& path);

}  // namespace fathom::data
