// A training run, from a config to the step loop: all that the loop works with, made in the order
// in which the members are declared. Every rank has one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/train/init_from.h"
#include "launcher/train/load_state.h"
#include "launcher/train/resume.h"
#include "launcher/train/run_directory.h"
#include "launcher/train/run_options.h"
#include "launcher/train/run_sinks.h"
#include "launcher/train/step_loop.h"
#include "monitoring/log.h"

namespace fathom::launcher {

class TrainingRun {
 public:
  // Collective. Locks the directory, decides about a resume, prepares the data, builds the model
  // and fills it. `config` is complete but for what depends on the machine and the data. Errors of
  // whatever does not fit.
  TrainingRun(Config config, const RunOptions& options, dist::Communicator& group);

  // Collective. How a run ended for good in an earlier attempt, by its result.json; none if
  // something is left to do. An end that was cut off is made up for: it is validated and judged
  // again. So is a failure that only the last validation showed.
  [[nodiscard]] std::optional<TrainResult> earlier_end() const;

  // Collective. Writes the run's files and opens its histories: from here on nothing refuses it.
  void open();
  [[nodiscard]] StepLoop& loop() { return *loop_; }

  // What the loop has come to, in result.json and on stderr.
  void finish(const TrainResult& result);
  // An error has ended the run. Says so in result.json, if that can be written and is still ours.
  // `status`: failed or stopped.
  void abandon(const std::string& status, const std::string& reason);
  // Goes on serving its metrics for monitoring.linger_seconds, so that Prometheus sees how the run
  // ended. Not after a signal, and a signal ends it.
  void linger(const TrainResult& result);
  // "fathom train: completed at step 5: ..." on rank 0's stderr.
  void log_result(const TrainResult& result) const;

 private:
  // Rank 0's, else null.
  [[nodiscard]] const checkpoint::Checkpoint* resumed() const {
    return resume_.checkpoint ? &*resume_.checkpoint : nullptr;
  }
  [[nodiscard]] const checkpoint::Checkpoint* donor() const { return donor_ ? &*donor_ : nullptr; }
  void compare_texts();
  void fill_model();
  void log_start(const RunStart& start) const;
  void make_loop();

  dist::Communicator& group_;
  RunOptions options_;
  monitoring::Log log_;
  Config config_;
  dist::Watchdog watchdog_;
  // Rank 0 may learn a tokenizer from all the text while its peers wait for it.
  std::optional<dist::Watchdog::Section> set_up_;
  RunDirectory directory_;
  Resume resume_;
  std::optional<checkpoint::Checkpoint> donor_;  // on rank 0: whose weights a new run begins with
  std::string tokenizer_;                        // that the run keeps or is given; empty: learned
  data::PreparedData data_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<model::Transformer> model_;
  std::optional<Sharding> sharding_;
  std::optional<optim::Adam> adam_;
  TrainState state_;                       // that the loop starts from
  std::optional<ValidationRecord> known_;  // of the validation due there, by an earlier attempt

  // From open() on.
  std::vector<std::string> references_;  // of data.valid, where train.best_metric is bleu
  std::optional<RunSinks> sinks_;
  std::optional<StepProfiler> profiler_;
  std::optional<GradientStep> gradients_;
  std::optional<observe::ParameterProbe> probe_;
  std::optional<Updater> updater_;
  std::optional<LayerReport> layers_;
  std::optional<Validator> validator_;
  std::optional<StateSnapshot> snapshot_;
  std::optional<CheckpointKeeper> keeper_;
  std::optional<StepLoop> loop_;
};

}  // namespace fathom::launcher
