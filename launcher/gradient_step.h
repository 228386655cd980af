// One step's gradient: forward and backward over this rank's virtual shards, summed over all ranks.
#pragma once

#include <memory>
#include <vector>

#include "core/data/batch_plan.h"
#include "core/model/transformer.h"
#include "core/observe/layer_probe.h"
#include "dist/gradient_reducer.h"

namespace fathom::launcher {

struct StepTiming {
  double forward_seconds = 0;
  double backward_seconds = 0;
  double reduce_seconds = 0;  // spent waiting for the reduction
};

// What a rank did of a step before the ranks met.
struct RankWork {
  double seconds = 0;
  double tokens = 0;  // source and target, with EOS
};

struct StepGradient {
  Tensor gradient;  // (1, P), the sum over the global batch; valid until the next step
  double loss = 0;  // smoothed objective, nats per target token
  double nll = 0;   // unsmoothed
  std::vector<observe::BlockSums> blocks;  // when observed
  StepTiming timing;
  std::vector<RankWork> ranks;  // by rank
};

struct StepOptions {
  dist::ReducerOptions reducer;
  int64_t micro_tokens = 4096;  // most tokens of one forward and backward
  double label_smoothing = 0;
  uint64_t seed = 1;  // of dropout
};

class GradientStep {
 public:
  virtual ~GradientStep() = default;
  // Collective. `step` counts from 1 and keys the dropout; `observe` samples layer statistics.
  [[nodiscard]] virtual StepGradient run(const data::Batch& batch, int64_t step, bool observe) = 0;
  [[nodiscard]] virtual int64_t memory_bytes() const = 0;
};

// All references outlive the result. The model's dtype decides the precision of the reduction.
[[nodiscard]] std::unique_ptr<GradientStep> make_gradient_step(model::Transformer& model,
                                                               Device& device,
                                                               const data::Dataset& data,
                                                               dist::Communicator& group,
                                                               const StepOptions& options);

}  // namespace fathom::launcher
