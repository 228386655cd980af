// From the flat buffers to numbers: what the parameters of every block and their gradients are like
// (theory: docs/metrics.md). The parameters of a block are those whose names begin with its own,
// its norm included; embeddings, output projection and final norms belong to none.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/optim/adam.h"
#include "core/topology/topology.h"

namespace fathom::observe {

// Sums over each parameter of a store, in its order. Made by kernels; the host reads them once.
struct ParameterSums {
  double gradient_square = 0;
  double weight_square = 0;         // after the update
  double update_square = 0;         // of the last update's change
  double zeros = 0, nonfinite = 0;  // entries of the gradient
};
inline constexpr int64_t kParameterSums = 5;

// Queues that every rank's rows, own (n, F), come together: all (N, F), in the store's order of
// chunks.
using ChunkGather = std::function<void(const Tensor& own, const Tensor& all)>;

class ParameterProbe {
 public:
  explicit ParameterProbe(const ParameterStore& store)
      : ParameterProbe(autograd::ParameterSlices(store)) {}
  // Looks at the slices alone; `gather` adds what the other ranks see of theirs, and is absent
  // where there is nothing to add. Then every call is collective.
  explicit ParameterProbe(const autograd::ParameterSlices& slices, ChunkGather gather = {});

  // Queues the sum of squares of each parameter's slice of `flat` (1, P), as (parameters, 1) f64.
  // Valid until the next call. The square root of the total is the gradient norm.
  [[nodiscard]] const Tensor& squared_norms(const Tensor& flat);

  // Queues all sums into `into` (1, parameters * kParameterSums) f64. `adam`'s last step had rate
  // `learning_rate`; null: there was none.
  void measure(const Tensor& gradient, const optim::Adam* adam, double learning_rate,
               const Tensor& into);
  [[nodiscard]] int64_t count() const { return squares_.rows() * kParameterSums; }
  // What measure() has written, by parameter.
  [[nodiscard]] static std::vector<ParameterSums> read(std::span<const double> values);

 private:
  // From one row for each chunk of the slices to one for each parameter.
  void sum_chunks(const Tensor& values, const Tensor& totals);

  autograd::ParameterSlices slices_;
  ChunkGather gather_;
  Tensor chunk_squares_, squares_;  // (n, 1), (parameters, 1) f64
  Tensor chunk_counts_;             // (n, 2)
  Tensor gathered_;                 // (1, 2 N), of all ranks; empty without `gather`
};

struct ParameterStatistics {
  double gradient_norm = 0;
  double weight_norm = 0;   // after the update
  double update_ratio = 0;  // norm of the update over that of the weights
  double zero_ratio = 0;    // share of exact zeros in the gradient
};

// By block.
[[nodiscard]] std::vector<ParameterStatistics> parameter_statistics(
    const ParameterStore& store, const std::vector<topology::BlockContext>& blocks,
    std::span<const ParameterSums> sums);

struct NonfiniteBlock {
  topology::BlockContext block;
  int64_t entries = 0;  // NaN or infinite, more than 0
};

// The blocks whose gradient is not finite, in the order of `blocks`.
[[nodiscard]] std::vector<NonfiniteBlock> nonfinite_blocks(
    const ParameterStore& store, const std::vector<topology::BlockContext>& blocks,
    std::span<const ParameterSums> sums);

}  // namespace fathom::observe
