// What a run says about itself, on rank 0: metrics for Prometheus, the .jsonl histories, the bar
// and the log. On other ranks every call does nothing, so the step loop need not ask which rank it
// is.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/observe/layer_statistics.h"
#include "launcher/config/config.h"
#include "launcher/evaluation.h"
#include "launcher/train/gradient_step.h"
#include "launcher/train/layer_report.h"
#include "monitoring/json.h"
#include "monitoring/log.h"
#include "monitoring/metrics.h"

namespace fathom::launcher {

struct StepRecord {
  int64_t step = 0, epoch = 0;
  double loss = 0, nll = 0, gradient_norm = 0, learning_rate = 0;
  int64_t source_tokens = 0, target_tokens = 0, sentences = 0;
  bool is_skipped = false;
  double step_seconds = 0, optimizer_seconds = 0;
  double flops_utilization = 0;  // of the peak of all ranks, 0 to 1
  StepTiming timing;
  std::vector<RankWork> ranks;
};

class Recorder {
 public:
  // `run_directory` exists and is locked. `resumed_from` rewinds the histories; -1 for a new run.
  Recorder(const Config& config, const std::filesystem::path& run_directory, int64_t resumed_from,
           int rank, int size, monitoring::Log& log);
  ~Recorder();

  void step(const StepRecord& record);
  void layers(int64_t step, const std::vector<observe::LayerRecord>& layers);
  void skipped(const StepRecord& record, const std::vector<observe::NonfiniteBlock>& blocks);
  void validation(int64_t step, const Validation& result, double bleu, double seconds);
  void saved(int64_t step, const std::string& path, int64_t bytes, double seconds);
  void save_failed(int64_t step, const std::string& reason);
  void event(const std::string& kind, monitoring::Object fields);
  void state(monitoring::RunState state);
  void dropped(const std::map<std::string, int64_t>& counts);
  void rejected(int64_t checkpoints);
  void memory(int64_t bytes);
  // All lines so far are on disk: called before a checkpoint that counts on them.
  void sync();
  // Writes result.json and ends the bar.
  void finish(const std::string& status, const std::string& reason, int64_t step,
              const monitoring::Object& more);

  // Counters, to be kept with a checkpoint and put back on resume.
  [[nodiscard]] std::string counters_json() const;
  void restore_counters(const std::string& json);

 private:
  void ranks(const std::vector<RankWork>& ranks);

  struct Impl;
  std::unique_ptr<Impl> impl_;  // null on other ranks than 0
};

}  // namespace fathom::launcher
