#include "launcher/train/history_sink.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/clock.h"
#include "launcher/train/config_changes.h"
#include "launcher/train/validation_figures.h"

namespace fathom::launcher {

using monitoring::Object;

StepHistory::StepHistory(std::filesystem::path path, int64_t resumed_from, bool is_branch)
    : path_(std::move(path)), resumed_from_(resumed_from) {
  if (!is_branch) open();
}

// Steps after `resumed_from` are done again from here on. A new run may find lines as well: those
// of an attempt that died before its first save.
void StepHistory::open() {
  writer_.emplace(path_);
  if (resumed_from_ >= 0 || std::filesystem::file_size(path_) > 0)
    writer_->rewind_to(std::max<int64_t>(resumed_from_, 0));
}

void StepHistory::append(Object line) {
  const std::lock_guard lock(mutex_);
  if (writer_)
    writer_->append(line);
  else
    held_.push_back(std::move(line));
}

void StepHistory::sync() {
  {
    const std::lock_guard lock(mutex_);
    if (!writer_) open();
    for (const Object& line : std::exchange(held_, {})) writer_->append(line);
  }
  writer_->sync();
}

void StepHistory::sync_written() {
  if (writer_) writer_->sync();
}

HistorySink::HistorySink(const std::filesystem::path& run, int64_t resumed_from, bool is_branch)
    : steps_(run / "metrics.jsonl", resumed_from, is_branch),
      layers_(run / "layers.jsonl", resumed_from, is_branch),
      events_(run / "events.jsonl") {}

void HistorySink::started(const RunStart& s) {
  if (s.is_resumed) {
    Object fields = {{"step", s.step}, {"from", s.from}, {"attempt", s.attempt}};
    const std::vector<ConfigChange> now = changes_at(s.changes, s.step);
    if (!now.empty()) fields.emplace_back("changes", as_json(now));
    event("resumed", std::move(fields));
  } else {
    event("started",
          {{"step", s.step}, {"ranks", s.ranks}, {"run_id", s.run_id}, {"init_from", s.init_from}});
  }
}

void HistorySink::step_done(const StepRecord& r) {
  steps_.append({{"step", r.step},
                 {"epoch", r.epoch},
                 {"loss", r.loss},
                 {"nll", r.nll},
                 {"gradient_norm", r.gradient_norm},
                 {"learning_rate", r.learning_rate},
                 {"tokens", r.target_tokens},
                 {"timing", Object{{"step_seconds", r.step_seconds},
                                   {"forward_seconds", r.timing.forward_seconds},
                                   {"backward_seconds", r.timing.backward_seconds},
                                   {"reduce_seconds", r.timing.reduce_seconds},
                                   {"optimizer_seconds", r.optimizer_seconds},
                                   {"tokens_per_second", r.tokens_per_second()},
                                   {"flops_utilization", r.flops_utilization}}}});
}

void HistorySink::layers_measured(int64_t step, std::span<const observe::LayerRecord> layers) {
  monitoring::Array blocks;
  for (const observe::LayerRecord& layer : layers) {
    Object fields = {{"stack", to_string(layer.block.stack)},
                     {"layer", layer.block.layer},
                     {"block", to_string(layer.block.kind)}};
    for (size_t row = 0; row < layer.values.size(); ++row)
      fields.emplace_back(observe::layer_statistics()[row].name, layer.values[row]);
    blocks.emplace_back(std::move(fields));
  }
  layers_.append({{"step", step}, {"blocks", std::move(blocks)}});
}

// Backward comes from the loss: where that was finite, what broke it is at or above the last block
// that is affected.
void HistorySink::step_skipped(const StepRecord& r,
                               std::span<const observe::NonfiniteBlock> blocks) {
  event("skipped", {{"step", r.step},
                    {"reason", "non-finite"},
                    {"loss", r.loss},
                    {"gradient_norm", r.gradient_norm},
                    {"nonfinite_blocks", int64_t(blocks.size())},
                    {"last_block", blocks.empty() ? "" : topology::name_of(blocks.back().block)}});
}

void HistorySink::validated(const ValidationRecord& r) {
  Object fields = {{"step", r.step}};
  append_figures(fields, r.result);
  if (r.bleu) fields.emplace_back("bleu", *r.bleu);
  event("validated", std::move(fields));
  events_.sync();  // a checkpoint may soon say that this validation is done
}

void HistorySink::judged(int64_t step, const std::string& verdict) {
  event("judged", {{"step", step}, {"verdict", verdict}});
}

void HistorySink::saved(const SaveRecord& r) {
  event("saved", {{"step", r.step},
                  {"path", r.path},
                  {"bytes", r.bytes},
                  {"seconds", r.seconds},
                  {"wait_seconds", r.wait_seconds}});
  if (r.set_aside.empty()) return;
  monitoring::Array paths;
  for (const std::string& path : r.set_aside) paths.emplace_back(path);
  event("set_aside", {{"step", r.step}, {"paths", std::move(paths)}});
}

void HistorySink::save_failed(int64_t step, const std::string& reason) {
  event("save_failed", {{"step", step}, {"reason", reason}});
}

void HistorySink::finished(const RunEnd& end) {
  event("stopped", {{"step", end.step}, {"status", end.status}, {"reason", end.reason}});
  steps_.sync_written();
  layers_.sync_written();
  events_.sync();
}

void HistorySink::sync() {
  steps_.sync();
  layers_.sync();
  events_.sync();
}

void HistorySink::event(const char* kind, Object fields) {
  Object line = {{"event", kind}, {"time", wall_seconds()}};
  line.insert(line.end(), std::make_move_iterator(fields.begin()),
              std::make_move_iterator(fields.end()));
  events_.append(line);
}

}  // namespace fathom::launcher
