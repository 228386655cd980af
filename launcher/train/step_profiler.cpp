#include "launcher/train/step_profiler.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace fathom::launcher {

StepProfiler::StepProfiler(Context& context, std::filesystem::path trace)
    : context_(context), trace_(std::move(trace)) {}

autograd::Profile* StepProfiler::begin_step(int64_t step) {
  if (first_ < 0) first_ = step + 1;
  if (step < first_ || step >= first_ + kSteps) return nullptr;
  steps_.push_back({.number = step, .spans = {}});
  return &profile_.emplace(context_);
}

void StepProfiler::end_step() {
  steps_.back().spans = profile_->spans();
  profile_.reset();
}

void StepProfiler::finish(std::ostream& out) const {
  if (steps_.empty()) {
    out << "profile: the run ended before its second step; nothing was profiled\n";
    return;
  }
  print(out);
  write_trace();
  out << fmt::format("profile: steps {} to {}; for https://ui.perfetto.dev: {}\n",
                     steps_.front().number, steps_.back().number, trace_.string());
}

void StepProfiler::print(std::ostream& out) const {
  struct Row {
    int64_t calls = 0;
    double seconds = 0;
    kernels::Cost cost;
  };
  std::map<std::pair<std::string, autograd::Phase>, Row> rows;
  double total = 0;
  for (const Step& step : steps_) {
    for (const autograd::Profile::Span& span : step.spans) {
      Row& row = rows[{span.name, span.phase}];
      ++row.calls;
      row.seconds += span.end - span.begin;
      row.cost += span.cost;
      total += span.end - span.begin;
    }
  }
  std::vector<std::pair<std::pair<std::string, autograd::Phase>, Row>> sorted(rows.begin(),
                                                                              rows.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.seconds > b.second.seconds;
  });
  const double steps = double(steps_.size());
  out << fmt::format("{:<22} {:<8} {:>11} {:>9} {:>7} {:>9} {:>8}\n", "op", "phase", "calls/step",
                     "ms/step", "share", "GFLOP/s", "GB/s");
  for (const auto& [key, row] : sorted)
    out << fmt::format("{:<22} {:<8} {:>11.1f} {:>9.3f} {:>6.1f}% {:>9.2f} {:>8.2f}\n", key.first,
                       to_string(key.second), double(row.calls) / steps, row.seconds * 1e3 / steps,
                       100 * row.seconds / total, row.cost.flops / row.seconds / 1e9,
                       row.cost.bytes / row.seconds / 1e9);
  out << fmt::format("{:<22} {:<8} {:>11} {:>9.3f}\n", "total", "", "", total * 1e3 / steps);
}

// One complete event ("X") a span, in microseconds, the steps one behind the other.
void StepProfiler::write_trace() const {
  nlohmann::json events = nlohmann::json::array();
  double offset = 0;
  for (const Step& step : steps_) {
    double end = 0;
    for (const autograd::Profile::Span& span : step.spans) {
      events.push_back({{"name", span.name},
                        {"cat", to_string(span.phase)},
                        {"ph", "X"},
                        {"ts", (offset + span.begin) * 1e6},
                        {"dur", (span.end - span.begin) * 1e6},
                        {"pid", 0},
                        {"tid", 0},
                        {"args",
                         {{"step", step.number},
                          {"phase", to_string(span.phase)},
                          {"flops", span.cost.flops},
                          {"bytes", span.cost.bytes}}}});
      end = std::max(end, span.end);
    }
    offset += end;
  }
  std::ofstream out(trace_);
  out << nlohmann::json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump() << '\n';
  out.close();
  require<IoError>(bool(out), trace_.string(), ": cannot be written; is the disk full?");
}

}  // namespace fathom::launcher
