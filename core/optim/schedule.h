// The learning rate as a pure function of the update number: a resumed run cannot be off by one.
#pragma once

#include <cstdint>

#include "core/optim/config.h"

namespace fathom::optim {

// Rate of update t = 1, 2, ... of `max_steps` (used by cosine and linear only). W = warmup_steps,
// s = warmup_start, lr = learning_rate; while t < W all but inverse-sqrt-w1, hold-inverse-sqrt,
// tfixup and constant-step warm up: s + t (lr - s)/W.
[[nodiscard]] double learning_rate(const OptimizerConfig& config, int64_t t, int64_t max_steps);

}  // namespace fathom::optim
