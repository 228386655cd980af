// Adam with decoupled weight decay on the flat buffers (Kingma and Ba 2015; Loshchilov and Hutter
// 2019). Element by element, so neither threads nor the layout can change a bit.
#pragma once

#include <cstdint>

#include "core/autograd/parameter_slices.h"
#include "core/optim/config.h"

namespace fathom::optim {

class Adam {
 public:
  // Updates only the slices and has moments, on the store's device, only for them.
  Adam(const OptimizerConfig& config, const autograd::ParameterSlices& slices);
  Adam(const OptimizerConfig& config, const ParameterStore& store)
      : Adam(config, autograd::ParameterSlices(store)) {}

  // Queues one update of the slices' masters (and working weights) by `gradient` (1, P), which
  // `control` (step_control in core/kernels/statistics.h) scales or cancels. The host must then
  // report by count_update() whether it was applied.
  void step(const Tensor& gradient, const Tensor& control, double learning_rate);
  void count_update() { ++updates_; }

  // Squared norm of the last update's change per chunk of the slices, (n, 1) f64, recomputed from
  // the moments; its rate was `learning_rate`.
  void update_norms(const Tensor& sums, double learning_rate) const;

  // State, for the checkpoint: first and second moments (1, slices' size), compact, and the updates
  // done.
  [[nodiscard]] const Tensor& first() const { return m_; }
  [[nodiscard]] const Tensor& second() const { return v_; }
  [[nodiscard]] int64_t& updates() { return updates_; }

 private:
  OptimizerConfig config_;
  autograd::ParameterSlices slices_;
  Tensor m_, v_;
  int64_t updates_ = 0;
};

}  // namespace fathom::optim
