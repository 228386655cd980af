// Arguments of the embedding's kernels.
#pragma once

#include "core/kernels/dropout.h"
#include "core/kernels/matrix.h"

namespace fathom::kernels {

// y = dropout(scale table[token] + sinusoids[position]).
//   tokens, positions (1, T) i32   table (V, C)   sinusoids (P, C) wide, P above every position
//   y (T, C)
struct EmbeddingForward {
  Matrix tokens, positions, table, sinusoids, y;
  double scale = 1;
  Dropout dropout = {};
};
// dtable (V, C) wide; rows of equal tokens are added in the order of the batch.
struct EmbeddingBackward {
  Matrix tokens, dy, dtable;
  double scale = 1;
  Dropout dropout = {};
};

}  // namespace fathom::kernels
