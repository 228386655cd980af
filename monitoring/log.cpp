#include "monitoring/log.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include "core/base/error.h"
#include "monitoring/progress.h"

namespace fathom::monitoring {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

using SinkPointer = std::shared_ptr<spdlog::sinks::sink>;

}  // namespace

struct Log::Sink {
  struct Line {
    spdlog::log_clock::time_point time;
    spdlog::level::level_enum level;
    std::string text;
  };

  Sink(const LogConfig& config, SinkPointer target) : screen(std::move(target)) {
    const LogLevel shown =
        config.rank == 0 ? config.level : std::max(config.level, LogLevel::kWarning);
    screen->set_level(to_spdlog(shown));
    const std::string rank =
        config.size > 1 ? join("rank ", config.rank, '/', config.size, ' ') : "";
    screen->set_pattern("%H:%M:%S " + rank + "%^%l%$: %v");
    is_kept = config.rank == 0;
    kept_level = std::min(to_spdlog(config.level), spdlog::level::info);
  }

  // When the target itself fails there is nowhere to report it, and it must not end the run.
  static void put(spdlog::sinks::sink& target, const Line& line) {
    if (!target.should_log(line.level)) return;
    try {
      target.log({line.time, {}, "fathom", line.level, line.text});
      target.flush();
    } catch (const std::exception&) {
    }
  }
  void keep(Line line) {
    if (!is_kept || line.level < kept_level) return;
    const std::lock_guard lock(mutex);
    if (file)
      put(*file, line);
    else if (early.size() < kMostEarly)
      early.push_back(std::move(line));
  }

  static constexpr size_t kMostEarly = 1000;
  SinkPointer screen, file;
  bool is_kept = false;
  spdlog::level::level_enum kept_level;
  std::mutex mutex;
  std::vector<Line> early;  // until there is a file
};

Log::Log(const LogConfig& config)
    : sink_(std::make_unique<Sink>(config, std::make_shared<spdlog::sinks::stderr_color_sink_mt>(
                                               wants_escapes() ? spdlog::color_mode::automatic
                                                               : spdlog::color_mode::never))) {}

Log::Log(const LogConfig& config, std::ostream& out)
    : sink_(std::make_unique<Sink>(config, std::make_shared<spdlog::sinks::ostream_sink_mt>(out))) {
}

Log::~Log() = default;

void Log::write(LogLevel level, const std::string& text) const {
  const Sink::Line line{spdlog::log_clock::now(), to_spdlog(level), text};
  if (shows(level)) {
    if (before_line_) before_line_();
    Sink::put(*sink_->screen, line);
  }
  sink_->keep(line);
}

void Log::note(const std::string& text) const {
  sink_->keep({spdlog::log_clock::now(), spdlog::level::info, text});
}

bool Log::shows(LogLevel level) const { return sink_->screen->should_log(to_spdlog(level)); }

void Log::also_to(const std::filesystem::path& file) {
  if (!sink_->is_kept) return;
  try {
    sink_->file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
  } catch (const spdlog::spdlog_ex& error) {
    return warn(join("log: ", error.what()));
  }
  sink_->file->set_pattern("%Y-%m-%d %H:%M:%S %l: %v");
  for (const Sink::Line& line : std::exchange(sink_->early, {})) Sink::put(*sink_->file, line);
}

}  // namespace fathom::monitoring
