// Validation while a run trains. One that is scheduled (train.validate_every) moves the run's
// state: the best value, patience, the verdict. One at the run's end, where none was scheduled,
// only tells how the run stands: going on later with a larger max_steps gives what a run that never
// stopped gives.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/validation_file.h"
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

// Both, of the scheduled validation that was due.
void count_validation(const ValidationRecord& record, score::VerdictMonitor& verdict,
                      TrainState& state);

// As it lies beside a checkpoint, and back. `data`: the hash of the set.
[[nodiscard]] checkpoint::ValidationResult result_of(const ValidationRecord& record,
                                                     const std::string& data);
[[nodiscard]] ValidationRecord record_of(const checkpoint::ValidationResult& result, int64_t step);

class Validator {
 public:
  // All references outlive it. `references`: of data.valid, for BLEU.
  Validator(const Config& config, const data::PreparedData& data,
            const std::vector<std::string>& references, model::Transformer& model, Device& device,
            dist::Communicator& group);

  [[nodiscard]] bool has_data() const { return data_.valid.has_value(); }
  [[nodiscard]] bool is_due(int64_t step) const;

  // Collective. `before_batch` is called before every batch, as often on all ranks; what it throws
  // ends the validation.
  const ValidationRecord& run(int64_t step, const std::function<void()>& before_batch = {});

  // An earlier attempt has found this.
  void recall(const ValidationRecord& record) { last_ = record; }

  [[nodiscard]] const std::optional<ValidationRecord>& last() const { return last_; }

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
