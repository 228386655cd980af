// What is summed over parameters and their gradients: by parameter, and over all those of a block,
// its norm included. A parameter belongs to the block whose name is a prefix of its own;
// embeddings, output projection and final norms belong to none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/autograd/parameter.h"
#include "core/topology/topology.h"

namespace fathom::observe {

struct ParameterSums {
  double gradient_square = 0;
  double weight_square = 0;         // after the update
  double update_square = 0;         // of the last update's change
  double zeros = 0, nonfinite = 0;  // entries of the gradient
  double entries = 0;

  ParameterSums& operator+=(const ParameterSums& other);
};

// By block; `sums` are by parameter, in the order of the store, and are added in it.
[[nodiscard]] std::vector<ParameterSums> sums_by_block(
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
