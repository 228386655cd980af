// What the events of a run carry, as plain data.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/evaluation.h"
#include "launcher/provenance.h"
#include "launcher/train/gradient_step.h"

namespace fathom::launcher {

// A run begins, or goes on from a checkpoint.
struct RunStart {
  int64_t step = 0;  // done so far
  bool is_resumed = false;
  int ranks = 1;
  int64_t attempt = 1;
  std::string run_id;
  std::string init_from;   // whose weights a new run begins with; empty: its own
  std::string from;        // the checkpoint of a resume
  int64_t lost_steps = 0;  // that an earlier attempt had done after it
  // By every resume so far; those of this one have its step.
  std::vector<ConfigChange> changes = {};
  int64_t rejected = 0;                    // checkpoints found damaged and passed over
  std::map<std::string, int64_t> dropped;  // pairs left out of training, by reason
};

struct StepRecord {
  int64_t step = 0, epoch = 0;
  double loss = 0, nll = 0, gradient_norm = 0, learning_rate = 0;
  int64_t source_tokens = 0, target_tokens = 0, sentences = 0;
  bool is_skipped = false;
  double step_seconds = 0, optimizer_seconds = 0;
  double flops_utilization = 0;  // of the peak of all ranks, 0 to 1
  int64_t memory_bytes = 0;      // of activations, on rank 0
  StepTiming timing;
  std::vector<RankWork> ranks;

  // Target tokens of all ranks.
  [[nodiscard]] double tokens_per_second() const { return double(target_tokens) / step_seconds; }
};

struct ValidationRecord {
  int64_t step = 0;
  Validation result = {};
  std::optional<double> bleu = {};  // where train.best_metric asks for it
  double seconds = 0;
};

// A checkpoint is on disk.
struct SaveRecord {
  int64_t step = 0;
  std::string path;
  int64_t bytes = 0;
  double seconds = 0;       // that it took to write, beside the training
  double wait_seconds = 0;  // that the training stood still for it
  // About the hints and older checkpoints; this one is safe.
  std::vector<std::string> warnings = {};
  std::vector<std::string> set_aside = {};  // where checkpoints of the steps now redone are
};

struct RunEnd {
  std::string status;  // completed, interrupted, failed, stopped
  std::string reason;  // one sentence
  std::string cause;   // one word: max_steps, max_epochs, patience, a verdict, signal, error
  int64_t step = 0;
  std::optional<Validation> validation;  // the last one
  std::string verdict = {};              // that did not end it; empty: none
};

}  // namespace fathom::launcher
