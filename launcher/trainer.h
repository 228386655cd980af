// The step loop: where data, model, distribution, checkpoints and monitoring meet.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/directory.h"
#include "core/data/prepare.h"
#include "core/observe/parameter_statistics.h"
#include "dist/watchdog.h"
#include "launcher/config/config.h"
#include "launcher/recorder.h"
#include "launcher/sharding.h"
#include "launcher/step_profiler.h"
#include "launcher/train_state.h"

namespace fathom::launcher {

// What the loop works with; all outlive it.
struct TrainerParts {
  const Config& config;  // batch.shards resolved
  const data::PreparedData& data;
  const std::vector<std::string>& references;  // of data.valid, where train.best_metric is bleu
  dist::Communicator& group;
  Device& device;
  model::Transformer& model;
  const Sharding& sharding;
  optim::Adam& adam;  // of the sharding's slices
  Recorder& recorder;
  StepProfiler* profiler;  // null: none was asked for
  dist::Watchdog& watchdog;
  checkpoint::CheckpointDirectory* checkpoints;  // on rank 0, else null
  std::string run_id;
  int64_t attempt = 1;
};

enum class StopKind { kCompleted, kSignalled, kFailed };

struct TrainResult {
  StopKind kind = StopKind::kCompleted;
  std::string reason;                    // why it ended, one sentence
  std::optional<Validation> validation;  // the last one
};

// How long peers may be waited for where one rank works alone, or longer than a step: ten times
// dist.timeout_seconds, but not more than `most`.
[[nodiscard]] dist::Watchdog::Duration section_limit(const Config& config,
                                                     dist::Watchdog::Duration most);

// Nothing is left to train.
[[nodiscard]] bool is_complete(const Config& config, const TrainState& state);

// The failure that was decided before `state` was saved: such a run has nothing left to do either.
[[nodiscard]] std::optional<score::Verdict> standing_verdict(const Config& config,
                                                             const data::PreparedData& data,
                                                             const TrainState& state);

class Trainer {
 public:
  // `state` is where a resume goes on, or a fresh one.
  Trainer(const TrainerParts& parts, const TrainState& state);

  [[nodiscard]] const TrainState& state() const { return state_; }

  // Collective. Trains until the config, a verdict or a signal ends it; the last step is saved.
  // IoError when that last save fails.
  [[nodiscard]] TrainResult run();

 private:
  void next_step();
  void update(const StepGradient& gradient, double learning_rate, StepRecord& record,
              autograd::Profile* profile);
  void record_layers(const StepGradient& gradient, double learning_rate);
  void skip(const StepGradient& gradient, const StepRecord& record);
  void advance(const data::Batch& batch);
  void validate();
  [[nodiscard]] bool wants_validation() const;
  void keep_track(const Validation& result, double bleu);
  [[nodiscard]] std::optional<checkpoint::Metric> metric() const;
  // True when the checkpoint is there; else save_failure_ says why not.
  bool save();
  struct Wishes {
    bool stop = false, save = false;
  };
  [[nodiscard]] Wishes agree();
  [[nodiscard]] TrainResult final_result();

  TrainerParts parts_;
  const Config& config_;
  TrainState state_;
  score::VerdictMonitor verdict_;
  GradientStep gradient_step_;
  observe::ParameterProbe probe_;
  Tensor control_;  // (1, kControlValues) f64, see core/kernels/statistics.h
  Tensor report_;   // (1, n) f64: all that the host reads of an observed step
  std::optional<data::EpochPlan> plan_;
  data::PairLengths lengths_;
  double peak_flops_;  // per second, all ranks
  int64_t planned_epoch_ = -1;
  int64_t saved_step_ = -1, validated_step_ = -1;
  double last_save_seconds_ = 0;  // monotonic
  std::optional<Validation> last_validation_;
  double last_bleu_ = 0;
  std::string save_failure_;
};

}  // namespace fathom::launcher
