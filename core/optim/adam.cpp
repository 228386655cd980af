#include "core/optim/adam.h"

#include <cmath>

namespace fathom::optim {
namespace {

// fairseq:    w -= lr sqrt(1-b2^t)/(1-b1^t) m / (sqrt v + eps)
// corrected:  w -= lr (m/(1-b1^t)) / (sqrt(v/(1-b2^t)) + eps)
// Both are rate * m / (sqrt v * root + eps).
struct Rule {
  double rate, root, decay;
};

Rule rule_at(const OptimizerConfig& c, int64_t t, double learning_rate) {
  const double correction1 = 1 - std::pow(c.beta1, double(t));
  const double correction2 = 1 - std::pow(c.beta2, double(t));
  const double decay = learning_rate * c.weight_decay;
  if (c.epsilon_mode == EpsilonMode::kFairseq)
    return {learning_rate * std::sqrt(correction2) / correction1, 1, decay};
  return {learning_rate / correction1, 1 / std::sqrt(correction2), decay};
}

}  // namespace

Adam::Adam(const OptimizerConfig& config, ParameterStore& store)
    : config_(config),
      store_(store),
      m_(store.device().compute().allocate(1, store.size(), store.wide())),
      v_(store.device().compute().allocate(1, store.size(), store.wide())) {}

void Adam::step(const Tensor& gradient, const Tensor& control, double learning_rate) {
  require(gradient.numel() == m_.numel(), "adam: gradient ", gradient, ", expected ", m_.numel(),
          " elements");
  const Rule rule = rule_at(config_, updates_ + 1, learning_rate);
  store_.device().compute().run(&kernels::Kernels::adam, {.weights = store_.weights(),
                                                          .working = store_.working(),
                                                          .gradient = gradient,
                                                          .m = m_,
                                                          .v = v_,
                                                          .control = control,
                                                          .beta1 = config_.beta1,
                                                          .beta2 = config_.beta2,
                                                          .epsilon = config_.epsilon,
                                                          .rate = rule.rate,
                                                          .root = rule.root,
                                                          .decay = rule.decay});
}

void Adam::update_norms(const Tensor& sums, double learning_rate) const {
  Context& context = store_.device().compute();
  if (updates_ == 0) return context.run(&kernels::Kernels::fill, {.y = sums, .value = 0});
  const Rule rule = rule_at(config_, updates_, learning_rate);
  context.run(&kernels::Kernels::update_norms, {.weights = store_.weights(),
                                                .m = m_,
                                                .v = v_,
                                                .chunks = store_.chunks(),
                                                .sums = sums,
                                                .epsilon = config_.epsilon,
                                                .rate = rule.rate,
                                                .root = rule.root,
                                                .decay = rule.decay});
}

}  // namespace fathom::optim
