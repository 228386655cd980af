#include "core/observe/parameter_statistics.h"

#include <cmath>
#include <limits>

namespace fathom::observe {
namespace {

// What is odd among the values of one parameter's slice.
struct ValueCounts {
  int64_t zeros = 0;
  int64_t nonfinite = 0;
};

// In the order of declaration.
std::vector<ValueCounts> count_values(ThreadPool& pool, const ParameterStore& store,
                                      const Tensor& flat) {
  std::vector<ValueCounts> counts(store.all().size());
  visit_float(flat.dtype(), [&]<class T>() {
    pool.run(int64_t(counts.size()), [&](int64_t p) {
      const Parameter& parameter = *store.all()[size_t(p)];
      const T* x = flat.data<T>() + parameter.offset;
      int64_t zeros = 0, nonfinite = 0;
#pragma omp simd reduction(+ : zeros, nonfinite)
      for (int64_t k = 0; k < parameter.numel(); ++k) {
        zeros += x[k] == T(0);
        nonfinite += !(std::abs(x[k]) <= std::numeric_limits<T>::max());
      }
      counts[size_t(p)] = {.zeros = zeros, .nonfinite = nonfinite};
    });
  });
  return counts;
}

template <class Visit>
void for_each_parameter(const ParameterStore& store, const topology::BlockContext& block,
                        Visit visit) {
  const std::string prefix = topology::name_of(block) + ".";
  for (size_t p = 0; p < store.all().size(); ++p)
    if (store.all()[p]->name.starts_with(prefix)) visit(p, *store.all()[p]);
}

}  // namespace

std::vector<ParameterStatistics> parameter_statistics(
    ThreadPool& pool, const ParameterStore& store,
    const std::vector<topology::BlockContext>& blocks, const Tensor& gradient,
    const std::vector<double>& squares, const optim::Adam& adam, double learning_rate) {
  const std::vector<double> weights = optim::squared_norms(pool, store, store.weights());
  const std::vector<ValueCounts> counts = count_values(pool, store, gradient);
  std::vector<ParameterStatistics> out;
  for (const topology::BlockContext& block : blocks) {
    double g = 0, w = 0, u = 0, zeros = 0, all = 0;
    for_each_parameter(store, block, [&](size_t p, const Parameter& parameter) {
      g += squares[p];
      w += weights[p];
      const double change =
          adam.update_norm(store.weights(), parameter.offset, parameter.numel(), learning_rate);
      u += change * change;
      zeros += double(counts[p].zeros);
      all += double(parameter.numel());
    });
    out.push_back({.gradient_norm = std::sqrt(g),
                   .weight_norm = std::sqrt(w),
                   .update_ratio = std::sqrt(u / w),
                   .zero_ratio = zeros / all});
  }
  return out;
}

std::vector<NonfiniteBlock> nonfinite_blocks(ThreadPool& pool, const ParameterStore& store,
                                             const std::vector<topology::BlockContext>& blocks,
                                             const Tensor& gradient) {
  const std::vector<ValueCounts> counts = count_values(pool, store, gradient);
  std::vector<NonfiniteBlock> out;
  for (const topology::BlockContext& block : blocks) {
    NonfiniteBlock bad = {.block = block};
    for_each_parameter(store, block,
                       [&](size_t p, const Parameter&) { bad.entries += counts[p].nonfinite; });
    if (bad.entries > 0) out.push_back(bad);
  }
  return out;
}

}  // namespace fathom::observe
