#include "monitoring/log.h"

#include <algorithm>
#include <utility>

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include "core/base/error.h"

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

}  // namespace

struct Log::Sink {
  Sink(const LogConfig& config, spdlog::sink_ptr target) : logger("fathom", std::move(target)) {
    const LogLevel shown =
        config.rank == 0 ? config.level : std::max(config.level, LogLevel::kWarning);
    logger.set_level(to_spdlog(shown));
    logger.flush_on(spdlog::level::debug);
    const std::string rank =
        config.size > 1 ? join("rank ", config.rank, '/', config.size, ' ') : "";
    logger.set_pattern("%H:%M:%S " + rank + "%^%l%$: %v");
    // When stderr itself fails there is nowhere to report it, and it must not end the run.
    logger.set_error_handler([](const std::string&) {});
  }

  spdlog::logger logger;
};

Log::Log(const LogConfig& config)
    : sink_(std::make_unique<Sink>(config,
                                   std::make_shared<spdlog::sinks::stderr_color_sink_mt>())) {}

Log::Log(const LogConfig& config, std::ostream& out)
    : sink_(std::make_unique<Sink>(config, std::make_shared<spdlog::sinks::ostream_sink_mt>(out))) {
}

Log::~Log() = default;

void Log::write(LogLevel level, const std::string& text) const {
  const auto spd_level = to_spdlog(level);
  if (!sink_->logger.should_log(spd_level)) return;
  if (before_line_) before_line_();
  sink_->logger.log(spd_level, spdlog::string_view_t(text));
}

}  // namespace fathom::monitoring
