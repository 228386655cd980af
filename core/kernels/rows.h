// Arguments of kernels that move or choose rows: key/value caches, beams, the next token.
#pragma once

#include "core/kernels/matrix.h"

namespace fathom::kernels {

// to[index[r]] = from[r] for every row r of `from`.   from (R, C)   to (N, C)   index (1, R) i32,
// each below N and none twice. Columns may be a slice of wider matrices.
struct AppendRows {
  Matrix from, to, index;
};

// to[r] = from[index[r]].   from (N, C)   to (R, C), apart from `from`   index (1, R) i32
struct GatherRows {
  Matrix from, to, index;
};

// The k largest log-probabilities of every row of logits (R, V), largest first; of equal ones the
// lower index first. A NaN counts as smaller than all numbers.
//   values (R, k) wide: logit - log sum exp(logits); may be absent      indices (R, k) i32
struct TopK {
  Matrix logits, values, indices;
};

}  // namespace fathom::kernels
