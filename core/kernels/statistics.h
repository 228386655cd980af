// Arguments of kernels that turn tensors into a few numbers. All sums are f64, made in an order
// that depends on the shape alone.
#pragma once

#include "core/kernels/matrix.h"

namespace fathom::kernels {

// A flat buffer (1, P) is summed in chunks, so that the order of a sum does not depend on who sums:
// row k of `chunks` (N, 3) i32 is {first element / 16, elements, parameter}. Parameters begin at
// multiples of 16 elements.
inline constexpr int64_t kChunkUnit = 16;
inline constexpr int64_t kChunkElements = 1 << 15;

// sums[k] = sum over chunk k of x^2.   x (1, P)   sums (1, N) f64
struct SquaredNorms {
  Matrix x, chunks, sums;
};

// For chunk k: {zeros, NaN or infinite entries} of x.   counts (N, 2) f64
struct CountValues {
  Matrix x, chunks, counts;
};

// totals[p] = sum in order of the values of the chunks whose parameter is p.
//   values (N, F) f64   totals (parameters, F) f64
struct SumChunks {
  Matrix values, chunks, totals;
};

// sums[0] += sum of first[t], sums[1] += sum of second[t] over t in [begin, begin + count), in
// order.   first, second (1, T)   sums (1, 2) f64
struct SumLosses {
  Matrix first, second, sums;
  int64_t begin = 0, count = 0;
};

// What a block does to a residual stream, added over rows [begin, begin + count): x before the
// block, o what it adds, next after it, n(.) a row without its mean and at variance 1:
//   sums += {1, mean next^2, Var x, Var o, mean (n(next) - n(x))^2, cos(x, next)}
//   x, o, next (T, C)   sums (1, 6) f64
inline constexpr int64_t kRowMoments = 6;
struct RowMoments {
  Matrix x, o, next, sums;
  int64_t begin = 0, count = 0;
};

// What decides an update, in one place, so that nobody has to wait for it. With loss = sum over
// shards of losses[s][0] / tokens, nll from losses[s][1], norm = sqrt(sum of squares):
//   control (1, 5) f64 = {loss, nll, norm, scale, skip};  scale = clip/norm where norm > clip > 0,
//   else 1;  skip = 1 unless loss and norm are finite.
//   losses (V, 2) f64   squares (parameters, 1) f64
inline constexpr int64_t kControlValues = 5;
struct StepControl {
  Matrix losses, squares, control;
  double tokens = 1;
  double clip_norm = 0;  // 0: off
};

}  // namespace fathom::kernels
