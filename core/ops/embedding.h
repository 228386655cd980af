// Token embedding with sinusoidal positions.
#pragma once

#include <span>

#include "core/autograd/tape.h"

namespace fathom::ops {

// dropout(scale table[token] + sinusoids[position]).
//   tokens, positions (T)   table (V, C)   sinusoids (P, C)   ->  (T, C)
// Positions count from 0 within a sentence. Throws InvalidArgument on a token outside the table or
// a position outside the sinusoids.
[[nodiscard]] Var embedding(Tape& tape, const Parameter& table, const Tensor& sinusoids,
                            std::span<const int32_t> tokens, std::span<const int32_t> positions,
                            double scale, kernels::Dropout dropout = {});

// fairseq's sinusoids for positions 0 .. count - 1, as (count, C): sines then cosines, frequency
// exp(-i ln 10000 / (C/2 - 1)), the first token of a sentence being number 2. C even, at least 4.
[[nodiscard]] Tensor make_sinusoids(int64_t count, int64_t C, DType dtype);

}  // namespace fathom::ops
