#include "core/data/lines.h"

#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"

namespace fathom::data {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

LineFault fault_of(std::string_view line) {
  if (int64_t(line.size()) > kLongestLineBytes) return LineFault::kTooLong;
  if (find_invalid_utf8(line) != std::string_view::npos) return LineFault::kInvalidUtf8;
  if (line.find('\0') != std::string_view::npos) return LineFault::kNulByte;
  if (line.ends_with('\r')) return LineFault::kCarriageReturn;
  return LineFault::kNone;
}

// Appends the contents of one member of a gzip file and returns the member's length. zlib's own
// file functions silently ignore trailing bytes that are not a member.
size_t unpack_member(std::string_view packed, const std::string& path, std::string& bytes) {
  constexpr int kGzipFormat = 15 + 16;  // the largest window, and a gzip header
  z_stream stream{};
  require<IoError>(inflateInit2(&stream, kGzipFormat) == Z_OK, "text: ", path,
                   " cannot be unpacked: out of memory");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, &inflateEnd);
  std::array<Bytef, 1 << 16> buffer;
  size_t given = 0;
  for (int code = Z_OK; code != Z_STREAM_END;) {
    if (stream.avail_in == 0) {  // its counter has 32 bits
      const std::string_view piece = packed.substr(given, 1 << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
      stream.avail_in = uInt(piece.size());
      given += piece.size();
    }
    stream.next_out = buffer.data();
    stream.avail_out = uInt(buffer.size());
    code = inflate(&stream, Z_NO_FLUSH);
    require<DataError>(code == Z_OK || code == Z_STREAM_END, "text: ", path,
                       " is a damaged gzip file (",
                       code == Z_BUF_ERROR ? "cut off"
                       : stream.msg        ? stream.msg
                                           : "no valid data",
                       "); copy it again");
    bytes.append(reinterpret_cast<const char*>(buffer.data()), buffer.size() - stream.avail_out);
  }
  return given - stream.avail_in;
}

// First bytes that no UTF-8 text begins with.
struct Signature {
  std::string_view bytes;
  const char* meaning;  // and the remedy
};
using namespace std::string_view_literals;
constexpr Signature kSignatures[] = {
    {"\x1f\x8b"sv, "a gzip file; add .gz to its name, or unpack it: gunzip"},
    {"\xFF\xFE\0\0"sv,
     "UTF-32 (byte order mark FF FE 00 00); convert it: iconv -f UTF-32 -t UTF-8"},
    {"\0\0\xFE\xFF"sv,
     "UTF-32 (byte order mark 00 00 FE FF); convert it: iconv -f UTF-32 -t UTF-8"},
    {"\xFF\xFE"sv, "UTF-16 (byte order mark FF FE); convert it: iconv -f UTF-16 -t UTF-8"},
    {"\xFE\xFF"sv, "UTF-16 (byte order mark FE FF); convert it: iconv -f UTF-16 -t UTF-8"},
    {"\xFD"
     "7zXZ"sv,
     "an xz file; unpack it: xz -d"},
    {"\x28\xB5\x2F\xFD"sv, "a zstd file; unpack it: zstd -d"},
    {"BZh91AY&SY"sv, "a bzip2 file; unpack it: bunzip2"},
    {"PK\x03\x04"sv, "a zip file; unpack it: unzip"}};

// UTF-16 without a mark: of the first bytes every second one is NUL, as in text of Latin letters.
bool looks_like_utf16(std::string_view bytes, size_t parity) {
  constexpr size_t kLooksAt = 256, kFewest = 8;
  const size_t n = std::min(bytes.size(), kLooksAt);
  size_t zeros = 0, others = 0;
  for (size_t i = 0; i < n; ++i) {
    if (bytes[i] != '\0') continue;
    ++(i % 2 == parity ? zeros : others);
  }
  return n >= kFewest && others == 0 && 4 * zeros > n;
}

std::string read_gzip(const std::string& path) {
  const std::string packed = read_file("text", path);
  require<DataError>(packed.empty() || packed.starts_with("\x1f\x8b"), "text: ", path,
                     " is not in gzip format; remove .gz from its name");
  std::string bytes;
  for (size_t at = 0; at < packed.size();) {
    at += unpack_member(std::string_view(packed).substr(at), path, bytes);
    // Padding of a tape or block device, as gzip(1) takes it.
    if (packed.find_first_not_of('\0', at) == std::string::npos) break;
  }
  return bytes;
}

}  // namespace

std::string_view reason(LineFault fault) {
  switch (fault) {
    case LineFault::kNone:
      break;
    case LineFault::kInvalidUtf8:
      return "invalid_utf8";
    case LineFault::kCarriageReturn:
      return "carriage_return";
    case LineFault::kNulByte:
      return "nul_byte";
    case LineFault::kTooLong:
      return "too_long";
  }
  return "none";
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\v\f\n") == std::string_view::npos;
}

std::string repaired(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::string out;
  out.reserve(line.size());
  for (size_t i = 0; i < line.size();) {
    const size_t n = utf8_length(line, i);
    const std::string_view piece = n == 0            ? kReplacement
                                   : line[i] == '\0' ? std::string_view(" ")
                                                     : line.substr(i, n);
    if (int64_t(out.size() + piece.size()) > kLongestLineBytes) break;
    out += piece;
    i += n == 0 ? 1 : n;
  }
  return out;
}

Text::Text(std::string name, std::string bytes) : name_(std::move(name)), bytes_(std::move(bytes)) {
  if (bytes_.starts_with(kByteOrderMark)) {
    skipped_bytes_ = int64_t(kByteOrderMark.size());
    bytes_.erase(0, kByteOrderMark.size());
  }
  size_t begin = 0;
  while (begin < bytes_.size()) {
    const size_t end = std::min(bytes_.find('\n', begin), bytes_.size());
    begin_.push_back(int64_t(begin));
    faults_.push_back(fault_of(std::string_view(bytes_).substr(begin, end - begin)));
    begin = end + 1;
  }
  // As if every line ended in LF, the last one too.
  begin_.push_back(int64_t(bytes_.size()) + (bytes_.ends_with('\n') || bytes_.empty() ? 0 : 1));
}

std::string_view Text::line(int64_t i) const {
  const auto begin = size_t(begin_[size_t(i)]), next = size_t(begin_[size_t(i) + 1]);
  return std::string_view(bytes_).substr(begin, next - begin - 1);
}

std::string Text::describe_fault(int64_t i) const {
  const std::string_view text = line(i);
  size_t at = 0;
  std::string what;
  switch (fault(i)) {
    case LineFault::kNone:
      what = "nothing is wrong";
      break;
    case LineFault::kInvalidUtf8:
      at = find_invalid_utf8(text);
      what = fmt::format("byte 0x{:02X} is not UTF-8 here", uint8_t(text[at]));
      break;
    case LineFault::kCarriageReturn:
      at = text.size() - 1;
      what = "carriage return before the line feed (Windows line ends)";
      break;
    case LineFault::kNulByte:
      at = text.find('\0');
      what = "NUL byte";
      break;
    case LineFault::kTooLong:
      what = join("line of ", text.size(), " bytes, the most is ", kLongestLineBytes);
      break;
  }
  const int64_t offset = skipped_bytes_ + begin_[size_t(i)] + int64_t(at);
  const size_t column = at + 1 + (i == 0 ? size_t(skipped_bytes_) : 0);
  return join(name_, ":", i + 1, ":", column, ": ", what, " (byte ", offset, " of the file)");
}

std::filesystem::path find_text(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return path;
  std::filesystem::path zipped = path;
  zipped += ".gz";
  require<DataError>(std::filesystem::exists(zipped, ignored), "text: neither ", path.string(),
                     " nor ", zipped.string(),
                     " exists; check data.train, data.valid, data.test, data.source, data.target",
                     path.native().find(',') != std::string::npos
                         ? " (one prefix each, not a list: join the texts with cat)"
                         : "",
                     path.is_relative() ? ", and the directory the program was started in: " +
                                              std::filesystem::current_path(ignored).string()
                                        : "");
  return zipped;
}

std::string describe_foreign_bytes(std::string_view bytes) {
  for (const Signature& signature : kSignatures)
    if (bytes.starts_with(signature.bytes)) return join("is ", signature.meaning);
  if (looks_like_utf16(bytes, 1)) return "is UTF-16; convert it: iconv -f UTF-16LE -t UTF-8";
  if (looks_like_utf16(bytes, 0)) return "is UTF-16; convert it: iconv -f UTF-16BE -t UTF-8";
  return "";
}

Text read_text(const std::filesystem::path& path) {
  const std::string found = find_text(path).string();
  const bool is_packed = found.ends_with(".gz");
  std::string bytes = is_packed ? read_gzip(found) : read_file("text", found);
  const std::string foreign = describe_foreign_bytes(bytes);
  require<DataError>(foreign.empty(), "text: ", found, is_packed ? " holds what " : " ", foreign);
  return {found, std::move(bytes)};
}

}  // namespace fathom::data
