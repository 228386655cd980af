// From the flat buffers to numbers: what the parameters of every block and their gradients are like
// (theory: docs/metrics.md). The parameters of a block are those whose names begin with its own,
// its norm included; embeddings, output projection and final norms belong to none.
#pragma once

#include <cstdint>
#include <vector>

#include "core/optim/adam.h"
#include "core/topology/topology.h"

namespace fathom::observe {

struct ParameterStatistics {
  double gradient_norm = 0;
  double weight_norm = 0;   // after the update
  double update_ratio = 0;  // norm of the update over that of the weights
  double zero_ratio = 0;    // share of exact zeros in the gradient
};

// By block. `gradient` is (1, P), `squares` its squared_norms(); the last step of `adam` had rate
// `learning_rate`. The numbers do not depend on the threads of `pool`.
[[nodiscard]] std::vector<ParameterStatistics> parameter_statistics(
    ThreadPool& pool, const ParameterStore& store,
    const std::vector<topology::BlockContext>& blocks, const Tensor& gradient,
    const std::vector<double>& squares, const optim::Adam& adam, double learning_rate);

struct NonfiniteBlock {
  topology::BlockContext block;
  int64_t entries = 0;  // NaN or infinite, more than 0
};

// The blocks whose gradient is not finite, in the order of `blocks`.
[[nodiscard]] std::vector<NonfiniteBlock> nonfinite_blocks(
    ThreadPool& pool, const ParameterStore& store,
    const std::vector<topology::BlockContext>& blocks, const Tensor& gradient);

}  // namespace fathom::observe
