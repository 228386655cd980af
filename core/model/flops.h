// What a training step costs on any device: the floating point operations of its matrix products on
// real tokens. A multiply-add is two, the backward pass twice the forward pass. Norms,
// softmax and dropout do not count, nor does a causal mask reduce attention (Chowdhery et al. 2022,
// arXiv 2204.02311, appendix B).
#pragma once

#include <cstdint>
#include <span>

#include "core/data/dataset.h"
#include "core/model/config.h"

namespace fathom::model {

// Forward and backward over these pairs; `lengths` count EOS.
[[nodiscard]] double training_flops(const ModelConfig& model, const data::PairLengths& lengths,
                                    std::span<const int64_t> pairs);

}  // namespace fathom::model
