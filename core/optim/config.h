// The `optimizer` section of a config. Plain data.
#pragma once

#include <array>
#include <cstdint>

namespace fathom::optim {

enum class EpsilonMode {
  kFairseq,    // lr sqrt(1-b2^t)/(1-b1^t) m/(sqrt v + eps)
  kCorrected,  // lr m_hat/(sqrt v_hat + eps)
};
enum class Schedule {
  kInverseSqrt,      // linear to W, then lr sqrt(W/t)
  kInverseSqrtW1,    // lr / sqrt(t): what "no warm-up" means when W is 1
  kHoldInverseSqrt,  // lr until W, then lr sqrt(W/t)
  kTFixup,           // lr sqrt(W/(W+t))
  kConstantStep,     // lr, times 0.1 from step W
  kCosine,           // linear to W, then half a cosine to zero at train.max_steps
  kLinear,           // linear to W, then linear to zero at train.max_steps
};

struct OptimizerConfig {
  double learning_rate = 5e-4;
  std::array<double, 2> betas = {0.9, 0.98};
  double epsilon = 1e-8;
  EpsilonMode epsilon_mode = EpsilonMode::kFairseq;
  double weight_decay = 0;  // decoupled
  double clip_norm = 0;     // 0: off
  double label_smoothing = 0.1;
  Schedule schedule = Schedule::kInverseSqrt;
  int64_t warmup_steps = 4000;
  double warmup_start = 1e-7;  // learning rate at step 0 of the warm-up
};

}  // namespace fathom::optim
