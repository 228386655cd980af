// The step loop: where data, model, distribution, checkpoints and monitoring meet.
#pragma once

#include <optional>

#include "core/data/batch_sequence.h"
#include "launcher/train/checkpoint_keeper.h"
#include "launcher/train/ending.h"
#include "launcher/train/layer_report.h"
#include "launcher/train/step_profiler.h"
#include "launcher/train/time_limits.h"
#include "launcher/train/updater.h"
#include "launcher/train/validator.h"

namespace fathom::launcher {

// What the loop works with; all outlive it.
struct LoopParts {
  const Config& config;  // batch.shards resolved
  const data::PreparedData& data;
  dist::Communicator& group;
  dist::Watchdog& watchdog;
  model::Transformer& model;
  optim::Adam& adam;
  GradientStep& gradients;
  Updater& updater;
  LayerReport& layers;
  Validator& validator;
  CheckpointKeeper& keeper;
  RunObserver& observer;
  StepProfiler* profiler = nullptr;  // null: none was asked for
};

class StepLoop {
 public:
  // `state`: of the checkpoint that is resumed, or a fresh one. Collective.
  StepLoop(const LoopParts& parts, const TrainState& state);

  [[nodiscard]] const TrainState& state() const { return state_; }

  // Collective. Makes the validation that is due, then trains until the config, a verdict or a
  // signal ends it; the last step is saved. IoError when that last save fails. A signal waits for
  // the step under way, but of a validation only for its batch: it stays due.
  [[nodiscard]] TrainResult run();

 private:
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] bool observes(int64_t step) const;
  void advance(const data::Batch& batch, const Update& update);
  void report(const data::Batch& batch, const StepGradient& gradient, const Update& update,
              double rate, double start);
  // Null when a signal has ended it.
  const ValidationRecord* validate(monitoring::RunState then);
  // False when a signal has ended it.
  [[nodiscard]] bool make_due_validation();
  [[nodiscard]] const TrainState& state_to_save() const;
  [[nodiscard]] std::optional<checkpoint::ValidationResult> found() const;
  [[nodiscard]] TrainResult end_of_run();

  LoopParts parts_;
  const Config& config_;
  TrainState state_;
  std::optional<TrainState> before_validation_;  // of its step
  score::VerdictMonitor verdict_;
  data::PairLengths lengths_;
  data::BatchSequence batches_;
  double peak_flops_;  // per second, all ranks
  StepLimit step_limit_;
};

}  // namespace fathom::launcher
