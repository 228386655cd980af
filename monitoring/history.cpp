#include "monitoring/history.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/file.h"

namespace fathom::monitoring {

JsonlWriter::JsonlWriter(std::filesystem::path path)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
  if (!file_.is_open()) fail_with("opening it", errno);
  repair_torn_line();
  sync_parent("history", path_);  // lines on disk are lost without their file's name
}

void JsonlWriter::append(const Object& line) {
  const int error = write_all(file_, to_json(line) + '\n');
  if (error != 0) {
    // Best effort: a part that stays is truncated as a torn line at the next start.
    [[maybe_unused]] const int cut = ftruncate(file_.get(), size_);
    fail_with("appending a line", error);
  }
  size_ = lseek(file_.get(), 0, SEEK_END);
}

void JsonlWriter::rewind_to(int64_t step) { append({{"marker", "resumed"}, {"step", step}}); }

void JsonlWriter::sync() const {
  if (fdatasync(file_.get()) != 0) fail_with("flushing it to disk", errno);
}

void JsonlWriter::repair_torn_line() {
  struct stat status;
  if (fstat(file_.get(), &status) != 0) fail_with("reading its size", errno);
  if (!S_ISREG(status.st_mode)) return;
  std::array<char, 4096> block;
  int64_t end = status.st_size;  // everything after it is torn
  while (end > 0) {
    const int64_t start = std::max<int64_t>(0, end - int64_t(block.size()));
    const ssize_t got = pread(file_.get(), block.data(), size_t(end - start), start);
    if (got != end - start) fail_with("reading its end", got < 0 ? errno : EIO);
    const auto newline = std::string_view(block.data(), size_t(got)).rfind('\n');
    if (newline != std::string_view::npos) {
      end = start + int64_t(newline) + 1;
      break;
    }
    end = start;
  }
  if (end != status.st_size && ftruncate(file_.get(), end) != 0)
    fail_with("cutting a torn line", errno);
  size_ = end;
}

void JsonlWriter::fail_with(const std::string& doing, int error) const {
  const char* remedy = error == ENOSPC || error == EDQUOT
                           ? "; earlier lines are kept, free space and go on"
                           : "; earlier lines are kept";
  fail<IoError>("history: ", path_.string(), ": ", doing, ": ", errno_text(error), remedy);
}

int64_t last_step(const std::filesystem::path& path) {
  constexpr std::streamoff kTail = 1 << 16;  // longer than a line of metrics.jsonl
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  in.seekg(std::max<std::streamoff>(0, std::streamoff(in.tellg()) - kTail));
  std::string text, last;
  while (std::getline(in, text) && !in.eof()) last = text;
  const auto json = nlohmann::json::parse(last, nullptr, /*allow_exceptions=*/false);
  const auto found = json.is_object() ? json.find("step") : json.end();
  const bool is_there = json.is_object() && found != json.end() && found->is_number_integer();
  return is_there ? found->get<int64_t>() : 0;
}

std::vector<std::string> read_effective(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  require<IoError>(in.is_open(), "history: ", path.string(), ": opening it: ", errno_text(errno),
                   "; expected a .jsonl file of a run");
  constexpr int64_t kNoStep = std::numeric_limits<int64_t>::min();
  std::vector<std::pair<int64_t, std::string>> lines;  // (step, text)
  std::string text;
  for (int64_t n = 1; std::getline(in, text) && !in.eof(); ++n) {  // at eof: no newline, torn
    const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    require<DataError>(json.is_object(), "history: ", path.string(), ":", n,
                       ": got a line that is no JSON object; the file is damaged");
    const auto found = json.find("step");
    const bool has_step = found != json.end() && found->is_number_integer();
    const int64_t step = has_step ? found->get<int64_t>() : kNoStep;
    if (json.value("marker", nlohmann::json()) == "resumed")
      std::erase_if(lines, [step](const auto& line) { return line.first > step; });
    else
      lines.emplace_back(step, std::move(text));
  }
  require<IoError>(!in.bad(), "history: ", path.string(), ": reading it failed");

  std::vector<std::string> effective;
  effective.reserve(lines.size());
  for (auto& line : lines) effective.push_back(std::move(line.second));
  return effective;
}

}  // namespace fathom::monitoring
