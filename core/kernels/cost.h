// What a kernel's call costs whatever computes it: floating point operations of its matrix products
// (a multiply-add is two) and bytes of its operands, each counted once. For profiles.
#pragma once

#include "core/kernels/table.h"

namespace fathom::kernels {

struct Cost {
  double flops = 0;
  double bytes = 0;

  Cost& operator+=(const Cost& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

template <class... Matrices>
[[nodiscard]] double bytes_of(const Matrices&... matrices) {
  return double((int64_t{0} + ... + (matrices.is_empty() ? 0 : matrices.bytes())));
}

// Of what moves memory and multiplies nothing. A kernel without an overload is not accounted for.
template <class Args>
[[nodiscard]] Cost cost_of(const Args&) {
  return {};
}

[[nodiscard]] inline Cost cost_of(const LinearForward& a) {
  return {2.0 * double(a.x.rows) * double(a.x.cols) * double(a.w.rows), bytes_of(a.x, a.w, a.y)};
}
[[nodiscard]] inline Cost cost_of(const LinearBackward& a) {
  const double product = 2.0 * double(a.x.rows) * double(a.x.cols) * double(a.w.rows);
  return {a.dx.is_empty() ? product : 2 * product, bytes_of(a.dy, a.x, a.w, a.dx, a.dw)};
}
[[nodiscard]] inline Cost cost_of(const LayerNormForward& a) {
  return {0, bytes_of(a.x, a.addend, a.sum, a.y)};
}
[[nodiscard]] inline Cost cost_of(const LayerNormBackward& a) {
  return {0, bytes_of(a.dy, a.sum, a.ds)};
}
[[nodiscard]] inline Cost cost_of(const EmbeddingForward& a) { return {0, 2 * bytes_of(a.y)}; }
[[nodiscard]] inline Cost cost_of(const EmbeddingBackward& a) { return {0, 2 * bytes_of(a.dy)}; }
[[nodiscard]] inline Cost cost_of(const AddScaled& a) { return {0, bytes_of(a.x, a.z, a.y)}; }
[[nodiscard]] inline Cost cost_of(const AddWeighted& a) {
  return {0, bytes_of(a.x, a.y) + (a.accumulate ? bytes_of(a.y) : 0)};
}
[[nodiscard]] inline Cost cost_of(const WeightGradient& a) { return {0, bytes_of(a.dy, a.x)}; }
[[nodiscard]] inline Cost cost_of(const ScaleColumns& a) { return {0, bytes_of(a.x, a.y)}; }
[[nodiscard]] inline Cost cost_of(const ScaleColumnsBackward& a) {
  return {0, bytes_of(a.dy, a.x, a.dx)};
}
[[nodiscard]] inline Cost cost_of(const GeluForward& a) { return {0, bytes_of(a.x, a.y)}; }
[[nodiscard]] inline Cost cost_of(const GeluBackward& a) { return {0, bytes_of(a.dy, a.x, a.dx)}; }

// Scores and weighted sums. The lengths are in the device's memory: every query is taken to see the
// mean number of keys; a causal mask takes nothing off.
[[nodiscard]] inline double attention_flops(const Matrix& q, const Segments& keys) {
  const double seen = keys.count > 0 ? double(keys.total) / double(keys.count) : 0;
  return 4.0 * double(q.rows) * seen * double(q.cols);
}
[[nodiscard]] inline Cost cost_of(const AttentionForward& a) {
  return {attention_flops(a.q, a.keys), bytes_of(a.q, a.k, a.v, a.y)};
}
[[nodiscard]] inline Cost cost_of(const AttentionBackward& a) {
  return {2 * attention_flops(a.q, a.keys), bytes_of(a.dy, a.q, a.k, a.v, a.y, a.dq, a.dk, a.dv)};
}
[[nodiscard]] inline Cost cost_of(const CrossEntropy& a) {
  const double product = 2.0 * double(a.x.rows) * double(a.x.cols) * double(a.w.rows);
  return {a.dx.is_empty() ? product : 3 * product, bytes_of(a.x, a.w, a.dx, a.dw)};
}
[[nodiscard]] inline Cost cost_of(const SquaredNorms& a) { return {0, bytes_of(a.x)}; }
[[nodiscard]] inline Cost cost_of(const Adam& a) {
  return {0, bytes_of(a.gradient, a.working) + 2 * bytes_of(a.weights, a.m, a.v)};
}

}  // namespace fathom::kernels
