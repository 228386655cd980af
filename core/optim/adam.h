// Adam with decoupled weight decay on the flat buffers (Kingma and Ba 2015; Loshchilov and Hutter
// 2019). Element by element, so neither threads nor the layout can change a bit.
#pragma once

#include <cstdint>

#include "core/autograd/parameter.h"
#include "core/base/thread_pool.h"
#include "core/optim/config.h"

namespace fathom::optim {

class Adam {
 public:
  Adam(const OptimizerConfig& config, int64_t count, DType dtype);

  // One update of `weights` by `gradient` (both (1, count)) times `gradient_scale` (clipping).
  void step(ThreadPool& pool, const Tensor& weights, const Tensor& gradient, double learning_rate,
            double gradient_scale);

  // ||change of the slice|| by the last step of rate `learning_rate`, recomputed from the moments.
  [[nodiscard]] double update_norm(const Tensor& weights, int64_t offset, int64_t count,
                                   double learning_rate) const;

  // State, for the checkpoint: first and second moments (1, count) and the updates done.
  [[nodiscard]] const Tensor& first() const { return m_; }
  [[nodiscard]] const Tensor& second() const { return v_; }
  [[nodiscard]] int64_t& updates() { return updates_; }

 private:
  OptimizerConfig config_;
  Tensor m_, v_;
  int64_t updates_ = 0;
};

// Sum of squares of each parameter's slice of `flat`, in the order of declaration; in f64, chunk by
// chunk, independent of threads. The square root of the total is the gradient norm.
[[nodiscard]] std::vector<double> squared_norms(ThreadPool& pool, const ParameterStore& store,
                                                const Tensor& flat);

}  // namespace fathom::optim
