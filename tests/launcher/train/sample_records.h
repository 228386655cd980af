// Records of a small run: two ranks, one block, no number that is zero.
#pragma once

#include <string>
#include <vector>

#include "core/observe/layer_statistics.h"
#include "launcher/train/run_records.h"
#include "monitoring/log.h"

namespace fathom::launcher {

inline const topology::BlockContext kSampleBlock = {
    .stack = topology::StackKind::kDecoder, .layer = 2, .kind = topology::BlockKind::kFeedForward};

inline RunStart sample_start() {
  return {.step = 0,
          .ranks = 2,
          .attempt = 1,
          .run_id = "id",
          .init_from = "",
          .from = "",
          .lost_steps = 0,
          .rejected = 1,
          .dropped = {{"too_long", 3}}};
}

inline StepRecord sample_step() {
  return {.step = 7,
          .epoch = 1,
          .loss = 2.5,
          .nll = 2.25,
          .gradient_norm = 0.75,
          .learning_rate = 0.001,
          .source_tokens = 90,
          .target_tokens = 100,
          .sentences = 10,
          .step_seconds = 0.5,
          .optimizer_seconds = 0.0625,
          .flops_utilization = 0.25,
          .memory_bytes = 4096,
          .timing = {.forward_seconds = 0.125, .backward_seconds = 0.25, .reduce_seconds = 0.03125},
          .ranks = {{.seconds = 0.25, .tokens = 100}, {.seconds = 0.5, .tokens = 100}}};
}

inline StepRecord skipped_step() {
  StepRecord record = sample_step();
  record.is_skipped = true;
  return record;
}

// Row i of the table has the value i + 1.
inline std::vector<observe::LayerRecord> sample_layers() {
  observe::LayerRecord record{.block = kSampleBlock, .values = {}};
  for (size_t i = 0; i < observe::layer_statistics().size(); ++i)
    record.values.push_back(double(i + 1));
  return {record};
}

inline const std::vector<observe::NonfiniteBlock> kNonfinite = {
    {.block = kSampleBlock, .entries = 5}};

inline ValidationRecord sample_validation() {
  return {.step = 7,
          .result = {.nll = 1, .source_gain = 0.5, .tokens = 40},
          .bleu = 12.5,
          .seconds = 0.25};
}

inline SaveRecord sample_save() {
  return {.step = 7, .path = "run/step-7", .bytes = 1000, .seconds = 0.125, .wait_seconds = 0.0625};
}

inline RunEnd sample_end() {
  return {.status = "completed",
          .reason = "reached train.max_steps 7",
          .cause = "max_steps",
          .step = 7,
          .validation = sample_validation().result};
}

}  // namespace fathom::launcher
