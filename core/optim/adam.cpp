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
  const double correction1 = 1 - std::pow(c.betas[0], double(t));
  const double correction2 = 1 - std::pow(c.betas[1], double(t));
  const double decay = learning_rate * c.weight_decay;
  if (c.epsilon_mode == EpsilonMode::kFairseq)
    return {learning_rate * std::sqrt(correction2) / correction1, 1, decay};
  return {learning_rate / correction1, 1 / std::sqrt(correction2), decay};
}

}  // namespace

Adam::Adam(const OptimizerConfig& config, const autograd::ParameterSlices& slices)
    : config_(config), slices_(slices) {
  const ParameterStore& store = slices.store();
  for (Tensor* moment : {&m_, &v_})
    *moment = store.device().compute().allocate(1, slices.size(), store.wide());
}

void Adam::step(const Tensor& gradient, const Tensor& control, double learning_rate) {
  const ParameterStore& store = slices_.store();
  require(gradient.numel() == store.size(), "adam: gradient ", gradient, ", expected ",
          store.size(), " elements");
  const Rule rule = rule_at(config_, updates_ + 1, learning_rate);
  int64_t at = 0;
  for (size_t r = 0; r < slices_.ranges().size(); ++r) {
    const Slice range = slices_.ranges()[r];
    const auto within = [&range](const Tensor& flat) {
      return flat.is_empty() ? flat : flat.columns(range.offset, range.count);
    };
    store.device().compute().run(&kernels::Kernels::adam, {.weights = slices_.masters_of(r),
                                                           .working = within(store.working()),
                                                           .gradient = within(gradient),
                                                           .m = m_.columns(at, range.count),
                                                           .v = v_.columns(at, range.count),
                                                           .control = control,
                                                           .beta1 = config_.betas[0],
                                                           .beta2 = config_.betas[1],
                                                           .epsilon = config_.epsilon,
                                                           .rate = rule.rate,
                                                           .root = rule.root,
                                                           .decay = rule.decay});
    at += range.count;
  }
}

void Adam::update_norms(const Tensor& sums, double learning_rate) const {
  const ParameterStore& store = slices_.store();
  Context& context = store.device().compute();
  if (updates_ == 0) return context.run(&kernels::Kernels::fill, {.y = sums, .value = 0});
  const Rule rule = rule_at(config_, updates_, learning_rate);
  // The weights before are gone. From w' = (1 - l) w - a, with l the decay and a Adam's part, the
  // change is w - w' = l w + a = (l w' + a) / (1 - l).
  const double kept = 1 - rule.decay;
  int64_t at = 0;
  for (size_t r = 0; r < slices_.ranges().size(); ++r) {
    const Slice range = slices_.ranges()[r], rows = slices_.rows_of(r);
    context.run(&kernels::Kernels::update_norms, {.weights = slices_.masters_of(r),
                                                  .m = m_.columns(at, range.count),
                                                  .v = v_.columns(at, range.count),
                                                  .chunks = slices_.chunks_of(r),
                                                  .sums = sums.row_range(rows.offset, rows.count),
                                                  .epsilon = config_.epsilon,
                                                  .rate = rule.rate / kept,
                                                  .root = rule.root,
                                                  .decay = rule.decay / kept});
    at += range.count;
  }
}

}  // namespace fathom::optim
