#include "core/observe/parameter_probe.h"

namespace fathom::observe {

using kernels::Kernels;

ParameterProbe::ParameterProbe(const autograd::ParameterSlices& slices, ChunkGather gather)
    : slices_(slices), gather_(std::move(gather)) {
  const ParameterStore& store = slices.store();
  Context& context = store.device().compute();
  const int64_t chunks = slices.chunks().rows(), parameters = int64_t(store.all().size());
  chunk_squares_ = context.allocate(chunks, 1, DType::kF64);
  squares_ = context.allocate(parameters, 1, DType::kF64);
  chunk_counts_ = context.allocate(chunks, 2, DType::kF64);
  if (gather_) gathered_ = context.allocate(1, 2 * store.chunks().rows(), DType::kF64);
}

void ParameterProbe::sum_chunks(const Tensor& values, const Tensor& totals) {
  const ParameterStore& store = slices_.store();
  Tensor all = values;
  if (gather_) {
    const int64_t n = store.chunks().rows();
    all = gathered_.columns(0, n * values.cols()).reshaped(n, values.cols());
    gather_(values, all);
  }
  store.device().compute().run(&Kernels::sum_chunks,
                               {.values = all, .chunks = store.chunks(), .totals = totals});
}

const Tensor& ParameterProbe::squared_norms(const Tensor& flat) {
  return squared_norms(flat, slices_.chunks());
}

const Tensor& ParameterProbe::squared_norms(const Tensor& values, const Tensor& chunks) {
  slices_.store().device().compute().run(&Kernels::squared_norms,
                                         {.x = values, .chunks = chunks, .sums = chunk_squares_});
  sum_chunks(chunk_squares_, squares_);
  return squares_;
}

void ParameterProbe::measure(const Tensor& gradient, const optim::Adam* adam, double learning_rate,
                             const Tensor& into) {
  const ParameterStore& store = slices_.store();
  Context& context = store.device().compute();
  const int64_t n = squares_.rows();
  require(into.numel() == count(), "parameter probe: ", into, " for ", count(), " sums");
  const auto part = [&](int64_t first, int64_t width) {
    return into.columns(first * n, width * n).reshaped(n, width);
  };
  context.copy(part(0, 1), squared_norms(gradient));
  context.copy(part(1, 1), squared_norms(store.weights(), slices_.master_chunks()));
  if (adam != nullptr)
    adam->update_norms(chunk_squares_, learning_rate);
  else
    context.run(&Kernels::fill, {.y = chunk_squares_, .value = 0});
  sum_chunks(chunk_squares_, part(2, 1));
  context.run(&Kernels::count_values,
              {.x = gradient, .chunks = slices_.chunks(), .counts = chunk_counts_});
  sum_chunks(chunk_counts_, part(3, 2));
}

std::vector<ParameterSums> ParameterProbe::read(std::span<const double> values) const {
  const auto& parameters = slices_.store().all();
  const size_t n = parameters.size();
  require(values.size() == n * size_t(kParameterSums), "parameter probe: got ", values.size(),
          " values of ", n, " parameters");
  std::vector<ParameterSums> out(n);
  for (size_t p = 0; p < n; ++p)
    out[p] = {.gradient_square = values[p],
              .weight_square = values[n + p],
              .update_square = values[2 * n + p],
              .zeros = values[3 * n + 2 * p],
              .nonfinite = values[3 * n + 2 * p + 1],
              .entries = double(parameters[p]->numel())};
  return out;
}

}  // namespace fathom::observe
