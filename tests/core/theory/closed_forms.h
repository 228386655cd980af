// The closed forms that the tests of this folder compare with. Papers: [X] Xie et al. 2023, arXiv
// 2304.14802 (ResiDual); [L] Liu et al. 2020, arXiv 2004.08249 (Admin). F1 ... G5 are the
// statements of docs/topologies.md, where each is explained and its tests are named.
//
// V = variance of the stream, f = sigma^2 = variance of a block's output, v0 = variance of the
// embedding, N = blocks, k = 1 .. N. A "stub" block's output does not depend on its input.
#pragma once

#include <cmath>
#include <cstdint>

namespace fathom::theory {

// Mean of |z| for a standard normal z; turns an RMS change into a mean absolute one.
// [F2; X corollaries 3.4 and 3.5]
inline const double kHalfNormalMean = std::sqrt(2 / 3.14159265358979323846);

// omega^2 of a block that adds f to a stream of variance V.  [F1; X theorem 3.3 in general]
inline double omega_squared(double V, double f) { return 2 - 2 * std::sqrt(V / (V + f)); }

// Pre-LN from a zero start, k >= 2: V = (k - 1) sigma^2.  [F1; X theorem 3.3]
inline double pre_ln_omega_squared(int k) {
  return 2 / (std::sqrt(double(k)) * (std::sqrt(double(k - 1)) + std::sqrt(double(k))));
}

// Post-LN and ResiDual's x: V = 1 at every k.  [F3; X theorem 3.6]
inline double post_ln_omega_squared(double f) { return 2 - 2 / std::sqrt(1 + f); }

// The same to first order in 1/width. The stream before the block has norm sqrt(width) exactly, so
// this is no pair of Gaussians: the bias is -2/width of omega^2 for small f.  [F5]
inline double post_ln_omega_squared_at_width(double f, int64_t width) {
  return post_ln_omega_squared(f) - 2 * f * (1 + f / 4) / std::pow(1 + f, 2.5) / double(width);
}

// Standard deviation of the branch over that of the sum.  [F4; L section 4]
inline double branch_share(double V, double f) { return std::sqrt(f / (V + f)); }

// Gauss's 2F1(1/2, 1/2; c; z) for 0 <= z < 1, by its series.
inline double hypergeometric_half_half(double c, double z) {
  double sum = 0;
  for (double n = 0, term = 1; term > 1e-17 * sum; ++n) {
    sum += term;
    term *= (0.5 + n) * (0.5 + n) / ((c + n) * (1 + n)) * z;
  }
  return sum;
}

// Mean cosine of two vectors of m standard normals with correlation rho.  [F5]
inline double mean_cosine(double rho, double m) {
  const double gamma_ratio = std::exp(std::lgamma((m + 1) / 2) - std::lgamma(m / 2));
  return rho * (2 / m) * gamma_ratio * gamma_ratio *
         hypergeometric_half_half((m + 2) / 2, rho * rho);
}

// The same omega^2 without the limit of infinite width: removing the mean leaves width - 1 normals.
inline double omega_squared_at_width(double V, double f, int64_t width) {
  return 2 - 2 * mean_cosine(std::sqrt(V / (V + f)), double(width - 1));
}

// ResiDual's output y = alpha x + LN(d) over stub blocks.  [F6]
struct DualOutput {
  double correlation = 0;  // c_N of x and LN(d)
  double variance = 0;     // of y_N
  double change = 0;       // mean (y_N - y_{N-1})^2
};
// `dual_start` is what the dual stream begins with, in variance: v0, or 0 for an empty start.
inline DualOutput dual_output(int N, double f, double v0, double dual_start, double alpha) {
  double C = dual_start;  // covariance of x_k and d_k
  double c = 0, previous_c = 0, s = 0;
  for (int k = 1; k <= N; ++k) {
    s = std::sqrt((k == 1 ? v0 : 1) + f);
    C = (C + f) / s;
    previous_c = c;
    c = C / std::sqrt(dual_start + k * f);
  }
  const double q = std::sqrt((dual_start + (N - 1) * f) / (dual_start + N * f));
  return {.correlation = c,
          .variance = alpha * alpha + 1 + 2 * alpha * c,
          .change = alpha * alpha * (2 - 2 / s) + (2 - 2 * q) +
                    2 * alpha * (c - previous_c / s - previous_c * q + previous_c)};
}

// Gradient norm at the output of stub block k over that at the stack's output.
// Through the norms that follow block k: product over j >= k of 1 / s_j.  [G1]
inline double post_ln_gradient(int k, int N, double f, double v0) {
  double product = 1;
  for (int j = k; j <= N; ++j) product /= std::sqrt((j == 1 ? v0 : 1) + f);
  return product;
}
// Through the one norm at the end, the same for every k.  [G3]
inline double pre_ln_gradient(int N, double f, double v0) { return 1 / std::sqrt(v0 + N * f); }
// Both parts point the same way for stub blocks, so their norms add.  [G5]
inline double dual_gradient(int k, int N, double f, double v0, double dual_start, double alpha) {
  return alpha * post_ln_gradient(k, N, f, v0) + pre_ln_gradient(N, f, dual_start);
}

}  // namespace fathom::theory
