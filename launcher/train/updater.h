// From a step's gradient to new weights: norm, clipping and the decision to skip a step that is not
// finite are made on the device, from what all ranks hold the same bits of, so all of them skip or
// none. The host reads what came of it once, after the update is queued.
#pragma once

#include "core/observe/parameter_probe.h"
#include "core/optim/adam.h"
#include "launcher/train/gradient_step.h"
#include "launcher/train/sharding.h"

namespace fathom::launcher {

struct Update {
  double loss = 0, nll = 0;  // nats per target token; loss is the smoothed objective
  double gradient_norm = 0;  // before clipping
  bool is_skipped = false;   // nothing was written
  double seconds = 0;
};

class Updater {
 public:
  // All references outlive it. `clip_norm` 0: off.
  Updater(Device& device, optim::Adam& adam, const Sharding& sharding,
          observe::ParameterProbe& probe, double clip_norm);

  // Collective where the optimizer is sharded; waits for the compute context.
  [[nodiscard]] Update apply(const StepGradient& gradient, int64_t target_tokens,
                             double learning_rate, autograd::Profile* profile = nullptr);

 private:
  Context& context_;
  optim::Adam& adam_;
  const Sharding& sharding_;
  observe::ParameterProbe& probe_;
  double clip_norm_;
  Tensor control_;  // (1, kControlValues) f64, see core/kernels/statistics.h
};

}  // namespace fathom::launcher
