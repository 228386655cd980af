// Arguments of the attention's kernels.
#pragma once

#include "core/kernels/dropout.h"
#include "core/kernels/matrix.h"
#include "core/kernels/segments.h"

namespace fathom::kernels {

// Scaled dot-product attention within sentences: query row i of sentence n sees the key rows of
// sentence n (with `causal` only the first i+1 of them).
//   q (T, H d), k, v (S, H d): column slices of wider matrices are fine;  y (T, H d)
//   lse (T, H) wide: log of the softmax denominator, kept for the derivative; empty in evaluation
// Dropout acts on the weights; its mask is keyed by (sentence, query, key, head).
struct AttentionForward {
  Matrix q, k, v, y, lse;
  Segments queries, keys;
  int64_t heads = 1;
  bool causal = false;
  Dropout dropout = {};
};
struct AttentionBackward {
  Matrix dy, q, k, v, y, lse, dq, dk, dv;  // dq, dk, dv are written
  Segments queries, keys;
  int64_t heads = 1;
  bool causal = false;
  Dropout dropout = {};
};

}  // namespace fathom::kernels
