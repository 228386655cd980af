#include "core/optim/adam.h"

#include <algorithm>
#include <cmath>

namespace fathom::optim {
namespace {

constexpr int64_t kChunk = 1 << 15;  // elements of one task

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

Adam::Adam(const OptimizerConfig& config, int64_t count, DType dtype)
    : config_(config),
      m_(autograd::allocate_flat(count, dtype)),
      v_(autograd::allocate_flat(count, dtype)) {}

void Adam::step(ThreadPool& pool, const Tensor& weights, const Tensor& gradient,
                double learning_rate, double gradient_scale) {
  require(weights.numel() == m_.numel() && gradient.numel() == m_.numel(), "adam: weights ",
          weights, " and gradient ", gradient, ", expected ", m_.numel(), " elements");
  ++updates_;
  const Rule rule = rule_at(config_, updates_, learning_rate);
  visit_float(weights.dtype(), [&]<class T>() {
    const T b1 = T(config_.beta1), b2 = T(config_.beta2), eps = T(config_.epsilon);
    const T c1 = T(1 - config_.beta1), c2 = T(1 - config_.beta2);
    const T rate = T(rule.rate), root = T(rule.root), keep = T(1 - rule.decay);
    const T scale = T(gradient_scale);
    pool.run((m_.numel() + kChunk - 1) / kChunk, [&](int64_t chunk) {
      const int64_t first = chunk * kChunk, count = std::min(kChunk, m_.numel() - first);
      T* __restrict w = weights.data<T>() + first;
      T* __restrict m = m_.data<T>() + first;
      T* __restrict v = v_.data<T>() + first;
      const T* __restrict gradients = gradient.data<T>() + first;
      for (int64_t i = 0; i < count; ++i) {
        const T g = gradients[i] * scale;
        m[i] = b1 * m[i] + c1 * g;
        v[i] = b2 * v[i] + c2 * g * g;
        w[i] = keep * w[i] - rate * m[i] / (std::sqrt(v[i]) * root + eps);
      }
    });
  });
}

double Adam::update_norm(const Tensor& weights, int64_t offset, int64_t count,
                         double learning_rate) const {
  if (updates_ == 0) return 0;
  const Rule rule = rule_at(config_, updates_, learning_rate);
  double sum = 0;
  visit_float(weights.dtype(), [&]<class T>() {
    for (int64_t i = offset; i < offset + count; ++i) {
      const double change = rule.decay * double(weights.data<T>()[i]) +
                            rule.rate * double(m_.data<T>()[i]) /
                                (std::sqrt(double(v_.data<T>()[i])) * rule.root + config_.epsilon);
      sum += change * change;
    }
  });
  return std::sqrt(sum);
}

std::vector<double> squared_norms(ThreadPool& pool, const ParameterStore& store,
                                  const Tensor& flat) {
  struct Task {
    size_t parameter;
    int64_t first, count;
  };
  std::vector<Task> tasks;
  for (size_t p = 0; p < store.all().size(); ++p)
    for (int64_t at = 0; at < store.all()[p]->numel(); at += kChunk)
      tasks.push_back(
          {p, store.all()[p]->offset + at, std::min(kChunk, store.all()[p]->numel() - at)});
  std::vector<double> partial(tasks.size());
  visit_float(flat.dtype(), [&]<class T>() {
    pool.run(int64_t(tasks.size()), [&](int64_t i) {
      const T* x = flat.data<T>() + tasks[size_t(i)].first;
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t k = 0; k < tasks[size_t(i)].count; ++k) sum += double(x[k]) * double(x[k]);
      partial[size_t(i)] = sum;
    });
  });
  std::vector<double> sums(store.all().size());
  for (size_t i = 0; i < tasks.size(); ++i) sums[tasks[i].parameter] += partial[i];
  return sums;
}

}  // namespace fathom::optim
