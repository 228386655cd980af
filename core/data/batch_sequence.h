// The batches of a run, epoch after epoch, addressed by (epoch, batch in epoch), so a resumed run
// seeks directly.
#pragma once

#include <cstdint>
#include <optional>

#include "core/data/batch_plan.h"

namespace fathom::data {

// The next batch of a run.
struct BatchPosition {
  int64_t epoch = 0;
  int64_t batch = 0;  // of the epoch
};

// The same share of the epoch where it has another number of batches, rounded down to a whole one.
// `batch_count` and `new_batch_count` are at least 1, and position.batch is below the first.
[[nodiscard]] inline BatchPosition at_same_share(const BatchPosition& position, int64_t batch_count,
                                                 int64_t new_batch_count) {
  return {position.epoch, position.batch * new_batch_count / batch_count};
}

class BatchSequence {
 public:
  // `lengths` outlives it. Errors as EpochPlan, at the first use.
  BatchSequence(const PairLengths& lengths, const BatchConfig& config, uint64_t seed)
      : lengths_(lengths), config_(config), seed_(seed) {}

  [[nodiscard]] Batch at(const BatchPosition& position) {
    return plan_of(position.epoch).batch(position.batch);
  }
  [[nodiscard]] BatchPosition after(const BatchPosition& position) {
    if (position.batch + 1 < plan_of(position.epoch).batch_count())
      return {position.epoch, position.batch + 1};
    return {position.epoch + 1, 0};
  }

 private:
  // Kept until another epoch is requested.
  EpochPlan& plan_of(int64_t epoch) {
    if (epoch != planned_epoch_) plan_.emplace(lengths_, config_, seed_, epoch);
    planned_epoch_ = epoch;
    return *plan_;
  }

  const PairLengths& lengths_;
  BatchConfig config_;
  uint64_t seed_;
  int64_t planned_epoch_ = -1;
  std::optional<EpochPlan> plan_;
};

}  // namespace fathom::data
