#include "launcher/train/progress_sink.h"

#include <cmath>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"

namespace fathom::launcher {
namespace {

constexpr double kSecondsBetweenNotes = 10;

}  // namespace

ProgressSink::ProgressSink(std::ostream& out, monitoring::ProgressConfig config,
                           monitoring::Log& log)
    : log_(log), progress_(out, std::move(config)) {
  log_.before_line([this] { progress_.clear(); });
}

ProgressSink::~ProgressSink() { log_.before_line({}); }

void ProgressSink::step_done(const StepRecord& r) {
  const std::string text =
      monitoring::training_text(r.loss, r.learning_rate, r.tokens_per_second());
  const std::string line = join("step ", r.step, ": ", text);
  log_.debug(line);
  if (log_.shows(monitoring::LogLevel::kDebug)) return;
  if (log_.shows(monitoring::LogLevel::kInfo)) progress_.update(r.step, text);
  if (monotonic_seconds() - noted_at_ < kSecondsBetweenNotes) return;
  noted_at_ = monotonic_seconds();
  log_.note(line);
}

void ProgressSink::validated(const ValidationRecord& r) {
  const Validation& v = r.result;
  std::string text =
      join("step ", r.step, ": validation loss ", v.nll, ", perplexity ", std::exp(v.nll));
  if (std::isfinite(v.source_gain)) text += join(", source gain ", v.source_gain);
  if (r.bleu) text += join(", BLEU ", *r.bleu);
  log_.info(text);
}

void ProgressSink::judged(int64_t step, const std::string& verdict) {
  log_.warn(join("step ", step, ": ", verdict));
}

void ProgressSink::saved(const SaveRecord& r) {
  log_.info(join("saved step ", r.step, ", ", r.path));
  for (const std::string& warning : r.warnings) log_.warn(warning);
  for (const std::string& path : r.set_aside)
    log_.info("set aside, since this run goes on from before it: " + path);
}

void ProgressSink::save_failed(int64_t step, const std::string& reason) {
  log_.error(join("checkpoint of step ", step, " failed: ", reason));
}

void ProgressSink::finished(const RunEnd& /*end*/) { progress_.finish(); }

}  // namespace fathom::launcher
