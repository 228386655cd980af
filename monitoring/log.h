// Messages for people, on stderr and in a file: one line each, with time and level, and on stderr
// with the rank when there are several. Only rank 0 prints debug and info; every rank prints
// warnings and errors. May be called from any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>

namespace fathom::monitoring {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogConfig {
  LogLevel level = LogLevel::kInfo;  // less important messages are dropped
  int rank = 0;
  int size = 1;
};

class Log {
 public:
  explicit Log(const LogConfig& config);            // to stderr, in colour on a terminal
  Log(const LogConfig& config, std::ostream& out);  // out must outlive the log
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void debug(const std::string& text) const { write(LogLevel::kDebug, text); }
  void info(const std::string& text) const { write(LogLevel::kInfo, text); }
  void warn(const std::string& text) const { write(LogLevel::kWarning, text); }
  void error(const std::string& text) const { write(LogLevel::kError, text); }

  // From here on what rank 0 says goes to the end of this file as well, with dates, and so does
  // what it has said so far. kInfo goes there even if `level` is higher. A file that cannot be
  // opened is warned of. Before other threads log.
  void also_to(const std::filesystem::path& file);
  // To the file alone: what stderr is told in another way.
  void note(const std::string& text) const;

  // Whether stderr gets such messages from this rank.
  [[nodiscard]] bool shows(LogLevel level) const;

  // Runs before each line that is printed, to clear a progress bar. Set before other threads log.
  void before_line(std::function<void()> hook) { before_line_ = std::move(hook); }

 private:
  void write(LogLevel level, const std::string& text) const;

  struct Sink;  // keeps spdlog out of this header
  std::unique_ptr<Sink> sink_;
  std::function<void()> before_line_;
};

}  // namespace fathom::monitoring
