// What a step says of every block: the statistics of its activations, parameters and gradients.
#pragma once

#include <vector>

#include "core/observe/layer_statistics.h"
#include "core/observe/parameter_probe.h"
#include "core/optim/adam.h"
#include "launcher/train/gradient_step.h"

namespace fathom::launcher {

class LayerReport {
 public:
  // All references outlive it. `shards`: virtual ones, of a batch.
  LayerReport(model::Transformer& model, const optim::Adam& adam, observe::ParameterProbe& probe,
              int64_t shards);

  // After the update of a step that was observed and not skipped; its rate was `learning_rate`.
  // Waits once. Collective where the optimizer is sharded, as is nonfinite().
  [[nodiscard]] std::vector<observe::LayerRecord> measure(const StepGradient& gradient,
                                                          double learning_rate);

  // The blocks whose gradient is not finite, in the model's order. Waits once.
  [[nodiscard]] std::vector<observe::NonfiniteBlock> nonfinite(const StepGradient& gradient);

 private:
  [[nodiscard]] std::vector<double> download(const Tensor& values) const;

  Context& context_;
  const ParameterStore& store_;
  const optim::Adam& adam_;
  observe::ParameterProbe& probe_;
  std::vector<topology::BlockContext> blocks_;
  int64_t shards_;
  Tensor values_;  // (1, n) f64: the blocks' sums by shard, then the parameters'
};

}  // namespace fathom::launcher
