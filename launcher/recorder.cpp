#include "launcher/recorder.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <optional>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/system.h"
#include "launcher/metric_catalogue.h"
#include "launcher/version.h"
#include "monitoring/exporter.h"
#include "monitoring/history.h"
#include "monitoring/progress.h"
#include "monitoring/targets.h"

namespace fathom::launcher {

using monitoring::Counter;
using monitoring::Gauge;
using monitoring::Histogram;
using monitoring::Object;

namespace {

// Steps after `step` will be done again. A new run may find lines as well: those of an attempt that
// died before its first save.
void rewind(monitoring::JsonlWriter& writer, const std::filesystem::path& path, int64_t step) {
  if (step >= 0 || std::filesystem::file_size(path) > 0)
    writer.rewind_to(std::max<int64_t>(step, 0));
}

std::string depth_of(const model::ModelConfig& model) {
  if (model.kind == model::ModelKind::kDecoder) return join("D", model.decoder_layers);
  return join("E", model.encoder_layers, "D", model.decoder_layers);
}

monitoring::LabelValues labels_of(const topology::BlockContext& block) {
  return {to_string(block.stack), std::to_string(block.layer), to_string(block.kind)};
}

std::string precision_of(const Config& config) {
  switch (config.train.precision) {
    case Precision::kFp64:
      return "fp64";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp32:
      break;
  }
  return "fp32";
}

}  // namespace

struct Recorder::Impl {
  Impl(const Config& c, const std::filesystem::path& directory, int64_t resumed_from,
       int world_size, monitoring::Log& l)
      : config(c),
        run(directory),
        log(l),
        metrics(c.monitoring.max_series, metric_catalogue()),
        exporter(metrics, {.listen = c.monitoring.listen, .required = c.monitoring.required}),
        steps(run / "metrics.jsonl"),
        layer_lines(run / "layers.jsonl"),
        events(run / "events.jsonl"),
        progress(std::cerr, monitoring::stderr_progress(c.run.name, c.train.max_steps,
                                                        std::max<int64_t>(resumed_from, 0))) {
    log.before_line([this] { progress.clear(); });
    std::filesystem::remove(run / "result.json");  // of an earlier attempt: this one has not ended
    rewind(steps, run / "metrics.jsonl", resumed_from);
    rewind(layer_lines, run / "layers.jsonl", resumed_from);
    for (const std::string& warning : exporter.warnings()) log.warn(warning);
    if (!exporter.address().empty()) {
      log.info("metrics: http://" + exporter.address() + "/metrics");
      targets.emplace(
          run / "targets.json", monitoring::reachable_address(exporter.address()),
          std::map<std::string, std::string>{{"run", c.run.name}, {"job_id", batch_job()}});
    }
    metrics.set(Gauge::kBuildInfo, {version(), commit()}, 1);
    metrics.set(Gauge::kRunInfo,
                {c.run.name, c.model.topology, depth_of(c.model), std::to_string(world_size),
                 std::to_string(c.batch.shards), precision_of(c),
                 c.train.device == DeviceChoice::kReference ? "reference" : "cpu"},
                1);
    metrics.publish();
  }

  Config config;
  std::filesystem::path run;
  monitoring::Log& log;
  monitoring::Metrics metrics;
  monitoring::Exporter exporter;
  std::optional<monitoring::TargetsFile> targets;
  monitoring::JsonlWriter steps, layer_lines, events;
  monitoring::Progress progress;

  ~Impl() { log.before_line({}); }
};

Recorder::Recorder(const Config& config, const std::filesystem::path& run_directory,
                   int64_t resumed_from, int rank, int size, monitoring::Log& log)
    : impl_(rank == 0 ? std::make_unique<Impl>(config, run_directory, resumed_from, size, log)
                      : nullptr) {}

Recorder::~Recorder() = default;

void Recorder::step(const StepRecord& r) {
  if (!impl_) return;
  const double tokens_per_second = double(r.target_tokens) / r.step_seconds;
  monitoring::Metrics& m = impl_->metrics;
  m.increment(Counter::kSteps);
  if (r.is_skipped) {
    m.increment(Counter::kSkippedSteps, {"nonfinite"}, 1);
    m.increment(Counter::kNonfinite, {std::isfinite(r.loss) ? "gradient" : "loss"}, 1);
  }
  m.increment(Counter::kTokens, {"source"}, double(r.source_tokens));
  m.increment(Counter::kTokens, {"target"}, double(r.target_tokens));
  m.increment(Counter::kSentences, double(r.sentences));
  m.increment(Counter::kPhaseSeconds, {"forward"}, r.timing.forward_seconds);
  m.increment(Counter::kPhaseSeconds, {"backward"}, r.timing.backward_seconds);
  m.increment(Counter::kPhaseSeconds, {"reduce"}, r.timing.reduce_seconds);
  m.increment(Counter::kPhaseSeconds, {"optimizer"}, r.optimizer_seconds);
  m.set(Gauge::kEpoch, double(r.epoch));
  m.set(Gauge::kLoss, r.loss);
  m.set(Gauge::kGradientNorm, r.gradient_norm);
  m.set(Gauge::kLearningRate, r.learning_rate);
  m.set(Gauge::kLastStepTimestamp, wall_seconds());
  m.set(Gauge::kModelFlopsUtilization, r.flops_utilization);
  m.observe(Histogram::kStepDuration, r.step_seconds);
  ranks(r.ranks);
  m.publish();
  impl_->steps.append({{"step", r.step},
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
                                         {"tokens_per_second", tokens_per_second},
                                         {"flops_utilization", r.flops_utilization}}}});
  impl_->progress.update(r.step, monitoring::training_text(r.loss, tokens_per_second));
}

void Recorder::ranks(const std::vector<RankWork>& ranks) {
  double first = std::numeric_limits<double>::infinity(), fastest = 0;
  const auto speed = [](const RankWork& w) { return w.seconds > 0 ? w.tokens / w.seconds : 0; };
  for (const RankWork& work : ranks) {
    first = std::min(first, work.seconds);
    fastest = std::max(fastest, speed(work));
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    const monitoring::LabelValues rank = {std::to_string(i)};
    impl_->metrics.set(Gauge::kRankStepLag, rank, ranks[i].seconds - first);
    // A rank without tokens in this step says nothing about its speed.
    if (ranks[i].tokens > 0)
      impl_->metrics.set(Gauge::kRankRelativePerformance, rank, speed(ranks[i]) / fastest);
  }
}

void Recorder::layers(int64_t step, const std::vector<observe::LayerRecord>& layers) {
  if (!impl_) return;
  monitoring::Array blocks;
  for (const observe::LayerRecord& r : layers) {
    const monitoring::LabelValues labels = labels_of(r.block);
    Object fields = {{"stack", labels[0]}, {"layer", r.block.layer}, {"block", labels[2]}};
    for (size_t row = 0; row < r.values.size(); ++row) {
      fields.emplace_back(observe::layer_statistics()[row].name, r.values[row]);
      if (impl_->config.monitoring.detail == Detail::kBlock)
        impl_->metrics.set(monitoring::BlockGauge(row), labels, r.values[row]);
    }
    if (impl_->config.monitoring.detail == Detail::kBlock)
      impl_->metrics.increment(Counter::kLayerNonfinite, labels, 0);
    blocks.emplace_back(std::move(fields));
  }
  impl_->layer_lines.append({{"step", step}, {"blocks", std::move(blocks)}});
}

// Backward comes from the loss: what broke it is at or above the last block that is affected.
void Recorder::skipped(const StepRecord& record,
                       const std::vector<observe::NonfiniteBlock>& blocks) {
  if (!impl_) return;
  event("skipped", {{"step", record.step},
                    {"reason", "non-finite"},
                    {"loss", record.loss},
                    {"gradient_norm", record.gradient_norm},
                    {"nonfinite_blocks", int64_t(blocks.size())},
                    {"last_block", blocks.empty() ? "" : topology::name_of(blocks.back().block)}});
  if (impl_->config.monitoring.detail != Detail::kBlock) return;
  for (const auto& [block, entries] : blocks)
    impl_->metrics.increment(Counter::kLayerNonfinite, labels_of(block), double(entries));
}

void Recorder::validation(int64_t step, const Validation& v, double bleu, double seconds) {
  if (!impl_) return;
  impl_->metrics.set(Gauge::kValidationLoss, v.nll);
  if (std::isfinite(v.source_gain)) impl_->metrics.set(Gauge::kValidationSourceGain, v.source_gain);
  if (std::isfinite(bleu)) impl_->metrics.set(Gauge::kValidationScore, {"bleu"}, bleu);
  impl_->metrics.increment(Counter::kPhaseSeconds, {"validation"}, seconds);
  impl_->metrics.publish();
  Object fields = {{"step", step}, {"validation_loss", v.nll}, {"perplexity", std::exp(v.nll)}};
  std::string text =
      join("step ", step, ": validation loss ", v.nll, ", perplexity ", std::exp(v.nll));
  if (std::isfinite(v.source_gain)) {
    fields.push_back({"source_gain", v.source_gain});
    text += join(", source gain ", v.source_gain);
  }
  if (std::isfinite(bleu)) {
    fields.push_back({"bleu", bleu});
    text += join(", BLEU ", bleu);
  }
  event("validated", std::move(fields));
  impl_->log.info(text);
}

void Recorder::saved(int64_t step, const std::string& path, int64_t bytes, double seconds) {
  if (!impl_) return;
  monitoring::Metrics& m = impl_->metrics;
  m.set(Gauge::kCheckpointLastSuccessTimestamp, wall_seconds());
  m.set(Gauge::kCheckpointLastStep, double(step));
  m.set(Gauge::kCheckpointBytes, double(bytes));
  m.observe(Histogram::kCheckpointDuration, seconds);
  m.increment(Counter::kPhaseSeconds, {"checkpoint"}, seconds);
  std::error_code ignored;
  const auto space = std::filesystem::space(impl_->run, ignored);
  if (!ignored) m.set(Gauge::kDiskFreeBytes, double(space.available));
  m.publish();
  event("saved", {{"step", step}, {"path", path}, {"bytes", bytes}});
}

void Recorder::save_failed(int64_t step, const std::string& reason) {
  if (!impl_) return;
  impl_->metrics.increment(Counter::kCheckpointFailures, {"io"}, 1);
  impl_->metrics.publish();
  event("save_failed", {{"step", step}, {"reason", reason}});
  impl_->log.error("checkpoint of step " + std::to_string(step) + " failed: " + reason);
}

void Recorder::event(const std::string& kind, Object fields) {
  if (!impl_) return;
  Object line = {{"event", kind}, {"time", wall_seconds()}};
  line.insert(line.end(), std::make_move_iterator(fields.begin()),
              std::make_move_iterator(fields.end()));
  impl_->events.append(line);
}

void Recorder::state(monitoring::RunState state) {
  if (!impl_) return;
  impl_->metrics.set(Gauge::kState, double(int(state)));
  impl_->metrics.publish();
}

void Recorder::dropped(const std::map<std::string, int64_t>& counts) {
  if (!impl_) return;
  for (const auto& [reason, count] : counts)
    impl_->metrics.increment(Counter::kDataDropped, {reason}, double(count));
}

void Recorder::rejected(int64_t count) {
  if (impl_ && count > 0)
    impl_->metrics.increment(Counter::kCheckpointsRejected, {"invalid"}, double(count));
}

void Recorder::sync() {
  if (!impl_) return;
  impl_->steps.sync();
  impl_->layer_lines.sync();
  impl_->events.sync();
}

void Recorder::memory(int64_t bytes) {
  if (impl_) impl_->metrics.set(Gauge::kArenaBytes, double(bytes));
}

void Recorder::finish(const std::string& status, const std::string& reason, int64_t step,
                      const Object& more) {
  if (!impl_) return;
  impl_->progress.finish();
  Object result = {{"status", status}, {"reason", reason}, {"step", step}};
  result.insert(result.end(), more.begin(), more.end());
  event("stopped", {{"step", step}, {"status", status}, {"reason", reason}});
  write_file_durably("run", impl_->run / "result.json", monitoring::to_json(result) + "\n");
  state(monitoring::RunState::kFinished);
  sync();
}

std::string Recorder::counters_json() const { return impl_ ? impl_->metrics.counters() : "[]"; }

void Recorder::restore_counters(const std::string& text) {
  if (!impl_ || text.empty()) return;
  for (const std::string& entry : impl_->metrics.restore_counters(text))
    impl_->log.warn("counter " + entry + " of the checkpoint is unknown here and is left out");
  impl_->metrics.increment(Counter::kRestarts);
  impl_->metrics.publish();
}

}  // namespace fathom::launcher
