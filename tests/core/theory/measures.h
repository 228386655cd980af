// Sums over tensors in double, and the few statistics that the tests need of a list of numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"

namespace fathom::theory {

// Mean of f(a_i, b_i) over all elements of two matrices of one shape.
template <class F>
double mean_over(const Tensor& a, const Tensor& b, F f) {
  require(a.same_shape(b), "mean_over: ", a, " and ", b);
  double sum = 0;
  visit_float(a.dtype(), [&]<class T>() {
    for (int64_t r = 0; r < a.rows(); ++r)
      for (int64_t c = 0; c < a.cols(); ++c)
        sum += f(double(a.row<T>(r)[c]), double(b.row<T>(r)[c]));
  });
  return sum / double(a.numel());
}

inline double mean_square(const Tensor& a) {
  return mean_over(a, a, [](double x, double) { return x * x; });
}
inline double norm(const Tensor& a) { return std::sqrt(mean_square(a) * double(a.numel())); }
inline double mean_square_difference(const Tensor& a, const Tensor& b) {
  return mean_over(a, b, [](double x, double z) { return (x - z) * (x - z); });
}
inline double mean_absolute_difference(const Tensor& a, const Tensor& b) {
  return mean_over(a, b, [](double x, double z) { return std::abs(x - z); });
}
inline double mean_product(const Tensor& a, const Tensor& b) {
  return mean_over(a, b, [](double x, double z) { return x * z; });
}
// ||a - b|| / ||b||
inline double relative_difference(const Tensor& a, const Tensor& b) {
  return std::sqrt(mean_square_difference(a, b) / mean_square(b));
}

// Rows first .. first + rows - 1 of x with mean 0 and variance 1 over features, in f64, by the
// definition; for the statistics of core/observe, which use norms without eps, gain and bias.
inline std::vector<std::vector<double>> normalised_rows(const Tensor& x, int64_t first,
                                                        int64_t rows) {
  std::vector<std::vector<double>> out;
  for (int64_t t = first; t < first + rows; ++t) {
    std::vector<double> row(size_t(x.cols()));
    visit_float(x.dtype(), [&]<class T>() {
      for (size_t c = 0; c < row.size(); ++c) row[c] = double(x.row<T>(t)[c]);
    });
    double average = 0, variance = 0;
    for (const double v : row) average += v / double(row.size());
    for (double& v : row) v -= average;
    for (const double v : row) variance += v * v / double(row.size());
    for (double& v : row) v /= std::sqrt(variance);
    out.push_back(std::move(row));
  }
  return out;
}
// Mean squared difference of the normalised rows: omega^2 over those rows.
inline double omega_squared_between(const Tensor& x, const Tensor& next, int64_t first,
                                    int64_t rows) {
  const auto a = normalised_rows(x, first, rows), b = normalised_rows(next, first, rows);
  double sum = 0;
  for (size_t t = 0; t < a.size(); ++t)
    for (size_t c = 0; c < a[t].size(); ++c) sum += (b[t][c] - a[t][c]) * (b[t][c] - a[t][c]);
  return sum / double(rows * x.cols());
}

inline double mean(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x;
  return sum / double(v.size());
}
// Slope of the least-squares line through (x_i, y_i).
inline double slope(const std::vector<double>& x, const std::vector<double>& y) {
  const double mx = mean(x), my = mean(y);
  double xy = 0, xx = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mx) * (y[i] - my);
    xx += (x[i] - mx) * (x[i] - mx);
  }
  return xy / xx;
}

}  // namespace fathom::theory
