// Token embedding with sinusoidal positions.
#pragma once

#include <vector>

#include "core/autograd/tape.h"

namespace fathom::ops {

// dropout(scale table[token] + sinusoids[position]).
//   tokens, positions (1, T) i32   table (V, C)   sinusoids (P, C) wide   ->  (T, C)
// Positions count from 0 within a sentence. Tokens are below V, positions below P: checked where
// the batch is made (core/model/device_batch.h).
[[nodiscard]] Var embedding(Tape& tape, const Parameter& table, const Tensor& sinusoids,
                            const Tensor& tokens, const Tensor& positions, double scale,
                            const kernels::Dropout& dropout = {});

// fairseq's sinusoids for positions 0 .. count - 1, as (count, C): sines then cosines, frequency
// exp(-i ln 10000 / (C/2 - 1)), the first token of a sentence being number 2. C even, at least 4.
[[nodiscard]] std::vector<double> sinusoids(int64_t count, int64_t C);

}  // namespace fathom::ops
