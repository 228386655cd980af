// From the flat buffers to sums over each parameter and its gradient (theory: docs/metrics.md).
// Kernels compute the sums; the host reads them once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/observe/parameter_sums.h"
#include "core/optim/adam.h"

namespace fathom::observe {

inline constexpr int64_t kParameterSums = 5;  // per parameter, without the number of its entries

// Queues a gather of every rank's rows, own (n, F), into all (N, F), in the store's order of
// chunks.
using ChunkGather = std::function<void(const Tensor& own, const Tensor& all)>;

class ParameterProbe {
 public:
  explicit ParameterProbe(const ParameterStore& store)
      : ParameterProbe(autograd::ParameterSlices(store)) {}
  // Covers the slices alone. With `gather` the other ranks' slices are added, and every call is
  // collective; without it the slices must be everything.
  explicit ParameterProbe(const autograd::ParameterSlices& slices, ChunkGather gather = {});

  // Queues the sum of squares of each parameter's slice of `flat` (1, P), as (parameters, 1) f64.
  // Valid until the next call. The square root of the total is the gradient norm.
  [[nodiscard]] const Tensor& squared_norms(const Tensor& flat);

  // Queues all sums into `into` (1, parameters * kParameterSums) f64. `adam`'s last step had rate
  // `learning_rate`; null: there was none.
  void measure(const Tensor& gradient, const optim::Adam* adam, double learning_rate,
               const Tensor& into);
  [[nodiscard]] int64_t count() const { return squares_.rows() * kParameterSums; }
  // Decodes what measure() has written, by parameter.
  [[nodiscard]] std::vector<ParameterSums> read(std::span<const double> values) const;

 private:
  // From one row for each chunk of the slices to one for each parameter.
  const Tensor& squared_norms(const Tensor& values, const Tensor& chunks);
  void sum_chunks(const Tensor& values, const Tensor& totals);

  autograd::ParameterSlices slices_;
  ChunkGather gather_;
  Tensor chunk_squares_, squares_;  // (n, 1), (parameters, 1) f64
  Tensor chunk_counts_;             // (n, 2)
  Tensor gathered_;                 // (1, 2 N), of all ranks; empty without `gather`
};

}  // namespace fathom::observe
