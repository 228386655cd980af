#include "core/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/error.h"

namespace fathom::optim {

double learning_rate(const OptimizerConfig& c, int64_t t, int64_t max_steps) {
  require(t >= 1, "learning_rate: updates count from 1, got ", t);
  const double lr = c.learning_rate, at = double(t), W = double(c.warmup_steps);
  const double warm = W > 0 ? c.warmup_start + at * (lr - c.warmup_start) / W : lr;
  const double left = double(std::max<int64_t>(max_steps - c.warmup_steps, 1));
  const double done = std::clamp((at - W) / left, 0.0, 1.0);
  switch (c.schedule) {
    case Schedule::kInverseSqrt:
      return at < W ? warm : lr * std::sqrt(std::max(W, 1.0) / at);
    case Schedule::kInverseSqrtW1:
      return lr / std::sqrt(at);
    case Schedule::kHoldInverseSqrt:
      return at < W ? lr : lr * std::sqrt(std::max(W, 1.0) / at);
    case Schedule::kTFixup:
      return lr * std::sqrt(std::max(W, 1.0) / (std::max(W, 1.0) + at));
    case Schedule::kConstantStep:
      return W > 0 && at >= W ? lr * 0.1 : lr;
    case Schedule::kCosine:
      return at < W ? warm : lr * 0.5 * (1 + std::cos(std::numbers::pi * done));
    case Schedule::kLinear:
      return at < W ? warm : lr * (1 - done);
  }
  fail("learning_rate: unknown schedule");
}

}  // namespace fathom::optim
