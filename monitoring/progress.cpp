#include "monitoring/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ostream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/clock.h"

namespace fathom::monitoring {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr int kWidestBar = 40, kNarrowestBar = 5;
// The first steps are slower than the rest and say little of it.
constexpr int64_t kLeftOut = 3, kFewestForAnEstimate = 10;

int stderr_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

bool wants_escapes() {
  const char* no_color = std::getenv("NO_COLOR");
  return no_color == nullptr || *no_color == '\0';
}

ProgressConfig stderr_progress(std::string title, int64_t total, int64_t start) {
  const char* term = std::getenv("TERM");
  ProgressConfig config;
  config.title = std::move(title);
  config.total = total;
  config.start = start;
  config.is_terminal = isatty(STDERR_FILENO) == 1 && term && std::string_view(term) != "dumb";
  config.uses_escapes = wants_escapes();
  config.width = stderr_columns;
  config.seconds = monotonic_seconds;
  return config;
}

Progress::Progress(std::ostream& out, ProgressConfig config)
    : out_(out), config_(std::move(config)), done_(config_.start) {
  if (!config_.seconds) config_.seconds = monotonic_seconds;
  if (!config_.width) config_.width = [] { return 80; };
  began_ = config_.seconds();
  began_at_ = config_.start;
}

Progress::~Progress() {
  try {
    finish();
  } catch (...) {  // a stream that throws must not end the process from here
  }
}

void Progress::update(int64_t done, std::string text) {
  const std::lock_guard lock(mutex_);
  if (is_finished_) return;
  done_ = done;
  text_ = std::move(text);
  if (done_ - config_.start <= kLeftOut) {
    began_ = config_.seconds();
    began_at_ = done_;
  }
  const double interval = config_.is_terminal ? kRedrawSeconds : config_.plain_interval_seconds;
  if (printed_done_ < 0 || config_.seconds() - printed_at_ >= interval) print();
}

void Progress::finish() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(is_finished_, true)) return;
  erase();
  if (!config_.is_terminal && printed_done_ >= 0 && printed_done_ != done_) print();
}

void Progress::clear() {
  const std::lock_guard lock(mutex_);
  erase();
}

void Progress::erase() {
  const size_t columns = std::exchange(drawn_, 0);
  if (columns == 0) return;
  out_ << '\r' << (config_.uses_escapes ? "\033[K" : std::string(columns, ' ') + '\r')
       << std::flush;
}

void Progress::print() {
  printed_at_ = config_.seconds();
  printed_done_ = done_;
  if (config_.is_terminal) {
    const std::string now = line(config_.width());
    const size_t rest = drawn_ > now.size() ? drawn_ - now.size() : 0;
    out_ << '\r' << now << (config_.uses_escapes ? "\033[K" : std::string(rest, ' ')) << std::flush;
    drawn_ = now.size();
  } else {
    out_ << line(/*columns=*/0) << std::endl;
  }
}

// columns 0: no limit and no bar.
std::string Progress::line(int columns) const {
  std::string head = fmt::format("{} {}", config_.title, done_);
  std::string tail;
  double share = 0;
  if (config_.total > 0) {
    share = std::clamp(double(done_) / double(config_.total), 0.0, 1.0);
    head += fmt::format("/{}", config_.total);
    tail = fmt::format(" {:.0f}%", std::floor(100 * share));
  }
  if (!text_.empty()) tail += "  " + text_;
  const std::string left = time_left();
  if (!left.empty()) tail += "  " + left + " left";
  if (columns <= 0) return head + tail;

  const size_t room = size_t(std::max(1, columns - 1));  // the last column would wrap on some
  const int bar = std::min(kWidestBar, int(room) - int(head.size() + tail.size()) - 3);
  if (config_.total > 0 && bar >= kNarrowestBar) {
    const int full = int(share * bar);
    head += " [" + std::string(size_t(full), '#') + std::string(size_t(bar - full), '-') + ']';
  }
  return (head + tail).substr(0, room);
}

std::string Progress::time_left() const {
  const double elapsed = config_.seconds() - began_;
  if (config_.total <= 0 || elapsed <= 0 || done_ >= config_.total) return "";
  if (done_ - config_.start < kFewestForAnEstimate) return "";
  return short_duration_text(elapsed / double(done_ - began_at_) * double(config_.total - done_));
}

std::string training_text(double loss, double learning_rate, double tokens_per_second) {
  const std::string rate =
      tokens_per_second >= 1e6   ? fmt::format("{:.1f}M", tokens_per_second / 1e6)
      : tokens_per_second >= 1e3 ? fmt::format("{:.1f}k", tokens_per_second / 1e3)
                                 : fmt::format("{:.0f}", tokens_per_second);
  if (std::isnan(loss)) loss = std::abs(loss);  // else some print -nan
  return fmt::format("loss {:.3f}, lr {:.2e}, {} tokens/s", loss, learning_rate, rate);
}

}  // namespace fathom::monitoring
