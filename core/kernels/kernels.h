// The kernel table: one entry per kernel, the same signatures on every device. A device fills its
// own table (`*_reference.cpp`, `*_cpu.cpp`); nothing outside a device names a kernel directly.
//
// Conventions, for all kernels:
//   activations are matrices (T, C), one packed real token per row;
//   gradients of parameters are accumulated (dw += ...), those of activations are written;
//   an empty tensor means "absent" (no bias) or "not wanted" (no dx);
//   a row's result depends on that row (and its sentence) alone, bit for bit, when
//   `fixed_tiles` is set; without it it may depend on the number of rows, never on threads.
#pragma once

#include <cstdint>
#include <span>

#include "core/kernels/dropout.h"
#include "core/kernels/segments.h"
#include "core/tensor/tensor.h"

namespace fathom {
class ThreadPool;
}

namespace fathom::kernels {

// y = dropout(relu(x w^T + b)).   x (T, K)   w (N, K)   b (1, N)   y (T, N)
struct LinearForward {
  Tensor x, w, b, y;
  bool relu = false;
  bool fixed_tiles = false;
  Dropout dropout = {};
};
// dz = dy * dropout mask * [y > 0 if relu];  dx = dz w;  dw += dz^T x;  db += column sums of dz.
// `scratch` (T, N) holds dz where a mask applies.
struct LinearBackward {
  Tensor dy, x, w, y, dx, dw, db, scratch;
  bool relu = false;
  Dropout dropout = {};
};

// s = x + addend (or x), y = (s - mean) / sqrt(var + eps) * gain + bias over the C entries of a
// row.
//   x, addend, sum, y (T, C)   gain, bias (1, C)   mean, rstd (1, T)
// `sum` is written only with an addend and kept for the derivative.
struct LayerNormForward {
  Tensor x, addend, gain, bias, sum, y, mean, rstd;
  double eps = 1e-5;
};
// With xhat = (s - mean) rstd, g = dy gain:  ds = rstd (g - avg(g) - xhat avg(g xhat)),
// dgain += sum of dy xhat over rows,  dbias += sum of dy.
struct LayerNormBackward {
  Tensor dy, sum, gain, mean, rstd, ds, dgain, dbias;
};

// y = dropout(scale table[token] + sinusoids[position]).
//   table (V, C)   sinusoids (P, C), P above every position   y (T, C)
struct EmbeddingForward {
  std::span<const int32_t> tokens, positions;
  Tensor table, sinusoids, y;
  double scale = 1;
  Dropout dropout = {};
};
struct EmbeddingBackward {
  std::span<const int32_t> tokens;
  Tensor dy, dtable;
  double scale = 1;
  Dropout dropout = {};
};

// y = a x + b z.   All (T, C); y may be x.
struct AddScaled {
  Tensor x, z, y;
  double a = 1, b = 1;
};

// y = x/2 (1 + erf(x / sqrt 2)), then dropout.
struct GeluForward {
  Tensor x, y;
  Dropout dropout = {};
};
struct GeluBackward {
  Tensor dy, x, dx;
  Dropout dropout = {};
};

// Scaled dot-product attention within sentences: query row i of sentence n sees the key rows of
// sentence n (with `causal` only the first i+1 of them).
//   q (T, H d), k, v (S, H d): column slices of wider matrices are fine;  y (T, H d)
//   lse (T, H): log of the softmax denominator, kept for the derivative; empty in evaluation
// Dropout acts on the weights; its mask is keyed by (sentence, query, key, head).
struct AttentionForward {
  Tensor q, k, v, y, lse;
  const Segments* queries = nullptr;
  const Segments* keys = nullptr;
  int64_t heads = 1;
  bool causal = false;
  Dropout dropout = {};
};
struct AttentionBackward {
  Tensor dy, q, k, v, y, lse, dq, dk, dv;  // dq, dk, dv are written
  const Segments* queries = nullptr;
  const Segments* keys = nullptr;
  int64_t heads = 1;
  bool causal = false;
  Dropout dropout = {};
};

// Linear layer, softmax and label-smoothed cross-entropy (fairseq 0.12), in slices of rows so that
// the (T, V) logits never exist:
//   loss_t = (1 - e - e_i) nll_t + e_i sum_v(-log p_v),  e_i = e / (V - 1)
// Writes per-row nll and loss (1, T) in nats; with dx set also
//   dx = weight dlogits w (T, C) and dw += weight dlogits^T x (V, C).
// `slice` (kCrossEntropyRows, V) is scratch: the logits of a few rows.
inline constexpr int64_t kCrossEntropyRows = 128;
struct CrossEntropy {
  Tensor x, w, slice;
  std::span<const int32_t> targets;
  Tensor nll, loss;
  double smoothing = 0;
  double weight = 1;
  Tensor dx, dw;
  bool fixed_tiles = false;
};

struct Kernels {
  void (*linear_forward)(ThreadPool&, const LinearForward&);
  void (*linear_backward)(ThreadPool&, const LinearBackward&);
  void (*layer_norm_forward)(ThreadPool&, const LayerNormForward&);
  void (*layer_norm_backward)(ThreadPool&, const LayerNormBackward&);
  void (*embedding_forward)(ThreadPool&, const EmbeddingForward&);
  void (*embedding_backward)(ThreadPool&, const EmbeddingBackward&);
  void (*add_scaled)(ThreadPool&, const AddScaled&);
  void (*gelu_forward)(ThreadPool&, const GeluForward&);
  void (*gelu_backward)(ThreadPool&, const GeluBackward&);
  void (*attention_forward)(ThreadPool&, const AttentionForward&);
  void (*attention_backward)(ThreadPool&, const AttentionBackward&);
  void (*cross_entropy)(ThreadPool&, const CrossEntropy&);
};

namespace reference {
[[nodiscard]] Kernels kernels();
}
namespace cpu {
[[nodiscard]] Kernels kernels();
}

}  // namespace fathom::kernels
