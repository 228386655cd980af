// Validation while a run trains. One that is scheduled (train.validate_every) moves the run's state:
// the best value, patience, the verdict. One at the run's end, where none was scheduled, only tells
// how the run stands: going on later with a larger max_steps gives what a run that never stopped
// gives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "core/data/prepare.h"
#include "launcher/config/config.h"
#include "launcher/train/run_records.h"
#include "launcher/train/train_state.h"

namespace fathom::launcher {

// What train.best_metric compares; none where the loss is not finite.
[[nodiscard]] std::optional<checkpoint::Metric> metric_of(const ValidationRecord& record);

// Early stopping: counts a scheduled validation.
void track_best(const ValidationRecord& record, TrainState& state);

// What it says about the verdict on the run.
void judge(const ValidationRecord& record, score::VerdictMonitor& verdict);

class Validator {
 public:
  // All references outlive it. `references`: of data.valid, for BLEU.
  Validator(const Config& config, const data::PreparedData& data,
            const std::vector<std::string>& references, model::Transformer& model, Device& device,
            dist::Communicator& group);

  [[nodiscard]] bool has_data() const { return data_.valid.has_value(); }
  [[nodiscard]] bool is_due(int64_t step) const;

  // Collective.
  const ValidationRecord& run(int64_t step);

  [[nodiscard]] const std::optional<ValidationRecord>& last() const { return last_; }
  // What a checkpoint of `step` is compared by: only a validation of that very step tells.
  [[nodiscard]] std::optional<checkpoint::Metric> metric(int64_t step) const;

 private:
  const Config& config_;
  const data::PreparedData& data_;
  const std::vector<std::string>& references_;
  model::Transformer& model_;
  Device& device_;
  dist::Communicator& group_;
  std::optional<ValidationRecord> last_;
};

}  // namespace fathom::launcher
