#include <cmath>
#include <limits>

#include "core/kernels/chunks.h"
#include "core/kernels/kernels_reference.h"

namespace fathom::kernels::reference {
namespace {

struct Moments {
  double mean, variance, square;
};

template <class F>
Moments moments(int64_t C, const F& x) {
  double sum = 0, squares = 0;
  for (int64_t c = 0; c < C; ++c) sum += x(c);
  const double mean = sum / double(C);
  for (int64_t c = 0; c < C; ++c) squares += (x(c) - mean) * (x(c) - mean);
  const double variance = squares / double(C);
  return {mean, variance, variance + mean * mean};
}

}  // namespace

void squared_norms(HostContext&, const SquaredNorms& a) {
  visit_float(a.x.dtype, [&]<class T>() {
    for (int64_t k = 0; k < a.chunks.rows; ++k) {
      const Chunk chunk = chunk_at(a.chunks, k);
      const T* x = a.x.as<T>() + chunk.first;
      double sum = 0;
      for (int64_t i = 0; i < chunk.count; ++i) sum += double(x[i]) * double(x[i]);
      a.sums.as<double>()[k] = sum;
    }
  });
}

void count_values(HostContext&, const CountValues& a) {
  visit_float(a.x.dtype, [&]<class T>() {
    for (int64_t k = 0; k < a.chunks.rows; ++k) {
      const Chunk chunk = chunk_at(a.chunks, k);
      const T* x = a.x.as<T>() + chunk.first;
      double zeros = 0, nonfinite = 0;
      for (int64_t i = 0; i < chunk.count; ++i) {
        zeros += double(x[i]) == 0;
        nonfinite += !std::isfinite(double(x[i]));
      }
      a.counts.row<double>(k)[0] = zeros;
      a.counts.row<double>(k)[1] = nonfinite;
    }
  });
}

void sum_chunks(HostContext&, const SumChunks& a) {
  for (int64_t p = 0; p < a.totals.rows; ++p)
    for (int64_t f = 0; f < a.totals.cols; ++f) a.totals.row<double>(p)[f] = 0;
  for (int64_t k = 0; k < a.chunks.rows; ++k)
    for (int64_t f = 0; f < a.totals.cols; ++f)
      a.totals.row<double>(chunk_at(a.chunks, k).parameter)[f] += a.values.row<double>(k)[f];
}

void sum_losses(HostContext&, const SumLosses& a) {
  double* sums = a.sums.as<double>();
  for (int64_t t = a.begin; t < a.begin + a.count; ++t) {
    sums[0] += load(a.first, 0, t);
    sums[1] += load(a.second, 0, t);
  }
}

void row_moments(HostContext&, const RowMoments& a) {
  const int64_t C = a.x.cols;
  double* sums = a.sums.as<double>();
  for (int64_t t = a.begin; t < a.begin + a.count; ++t) {
    const auto x = [&](int64_t c) { return load(a.x, t, c); };
    const auto o = [&](int64_t c) { return load(a.o, t, c); };
    const auto next = [&](int64_t c) { return load(a.next, t, c); };
    const Moments mx = moments(C, x), mo = moments(C, o), mn = moments(C, next);
    const double rx = 1 / std::sqrt(mx.variance), rn = 1 / std::sqrt(mn.variance);
    double change = 0, dot = 0;
    for (int64_t c = 0; c < C; ++c) {
      const double d = (next(c) - mn.mean) * rn - (x(c) - mx.mean) * rx;
      change += d * d;
      dot += x(c) * next(c);
    }
    sums[0] += 1;
    sums[1] += mn.square;
    sums[2] += mx.variance;
    sums[3] += mo.variance;
    sums[4] += change / double(C);
    sums[5] += dot / double(C) / std::sqrt(mx.square * mn.square);
  }
}

void step_control(HostContext&, const StepControl& a) {
  double loss = 0, nll = 0, sum = 0;
  for (int64_t s = 0; s < a.losses.rows; ++s) {
    loss += a.losses.row<double>(s)[0] / a.tokens;
    nll += a.losses.row<double>(s)[1] / a.tokens;
  }
  for (int64_t p = 0; p < a.squares.rows; ++p) sum += a.squares.row<double>(p)[0];
  const double norm = std::sqrt(sum);
  double* control = a.control.as<double>();
  control[0] = loss;
  control[1] = nll;
  control[2] = norm;
  control[3] = a.clip_norm > 0 && norm > a.clip_norm ? a.clip_norm / norm : 1;
  control[4] = std::isfinite(loss) && std::isfinite(norm) ? 0 : 1;
}

}  // namespace fathom::kernels::reference
