// Scaled dot-product attention over ragged sentences: no padding, no mask tensor, no stored
// probabilities (the derivative recomputes them from the kept log-sum-exp).
#pragma once

#include "core/autograd/tape.h"
#include "core/kernels/segments.h"

namespace fathom::ops {

struct AttentionShape {
  kernels::Segments queries, keys;  // their memory must outlive the tape
  int64_t heads = 1;
  bool causal = false;
};

// qkv (T, 3 C): queries, keys and values side by side  ->  (T, C)
[[nodiscard]] Var self_attention(const Var& qkv, const AttentionShape& shape,
                                 const kernels::Dropout& dropout = {});

// q (T, C), kv (S, 2 C)  ->  (T, C)
[[nodiscard]] Var cross_attention(const Var& q, const Var& kv, const AttentionShape& shape,
                                  const kernels::Dropout& dropout = {});

}  // namespace fathom::ops
