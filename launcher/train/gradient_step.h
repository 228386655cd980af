// One step's gradient: forward and backward over this rank's virtual shards, summed over all ranks.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/data/micro_batches.h"
#include "core/model/transformer.h"
#include "core/observe/layer_probe.h"
#include "dist/data_group.h"
#include "dist/gradient_reducer.h"
#include "dist/reduction_tree.h"

namespace fathom::launcher {

struct StepTiming {
  double forward_seconds = 0;
  double backward_seconds = 0;
  double reduce_seconds = 0;  // spent waiting for the reduction
};

// What a rank did in a step before the ranks met.
struct RankWork {
  double seconds = 0;
  double tokens = 0;  // source and target, with EOS
};

// Tensors of the device, complete when its compute context is; valid until the next step.
struct StepGradient {
  Tensor gradient;  // (1, P), the sum over the global batch, as far as the outcome says
  Tensor losses;  // (V, 2) f64: per shard the sums of loss and nll over its target tokens, in nats
  Tensor blocks;  // (V, blocks * observe::kBlockSums) f64 when observed, else empty
};

struct StepOptions {
  dist::ReducerOptions reducer;
  int64_t micro_tokens = 4096;  // most tokens of one forward and backward
  double label_smoothing = 0;
  uint64_t seed = 1;                          // of dropout
  std::function<void()> on_micro_batch = {};  // progress within a step
};

class GradientStep {
 public:
  // All references outlive it. Collective.
  GradientStep(model::Transformer& model, Device& device, const data::Dataset& data,
               dist::Communicator& group, const dist::Ownership& ownership,
               const StepOptions& options);

  // Queues the step and does not wait. `step` counts from 1 and keys the dropout; `observe` samples
  // layer statistics. Collective.
  // `profile`, where present, gets a span for every op.
  [[nodiscard]] StepGradient run(const data::Batch& batch, int64_t step, bool observe,
                                 autograd::Profile* profile = nullptr);

  // Of the last step, once the compute context has passed it. ranks() is collective.
  [[nodiscard]] StepTiming timing() const;
  [[nodiscard]] std::vector<RankWork> ranks();

  [[nodiscard]] int64_t memory_bytes() const;

 private:
  void begin(const data::Batch& batch, int64_t step, bool observe);
  [[nodiscard]] std::vector<data::MicroBatch> micro_batches(const data::Batch& batch) const;
  void sum_losses(const ops::TokenLosses& losses, const data::MicroBatch& micro);
  [[nodiscard]] StepGradient reduce(bool observe, autograd::Profile* profile);
  [[nodiscard]] Tensor rows_of(const data::MicroBatch& micro, const Tensor& own) const;
  [[nodiscard]] Tensor in_shard_order(const Tensor& own, const Tensor& all);

  struct MicroBatchEvents {
    tensor::Event begin, middle, end;  // of forward, between, of backward
  };

  model::Transformer& model_;
  Device& device_;
  const data::Dataset& data_;
  data::PairLengths lengths_;
  dist::Communicator& group_;
  StepOptions options_;
  dist::ShardRange owned_;
  dist::GradientReducer reducer_;
  std::unique_ptr<dist::Communicator> data_communicator_;
  std::unique_ptr<dist::DataGroup> data_group_;
  std::vector<topology::BlockContext> blocks_;
  Tensor losses_, sums_;          // a row for each shard of this rank, see StepGradient
  Tensor all_losses_, all_sums_;  // of all ranks; empty with one
  tensor::Event begin_, end_;     // of this rank's work
  std::vector<MicroBatchEvents> events_;
  double tokens_ = 0;
};

}  // namespace fathom::launcher
