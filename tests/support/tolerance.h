// How close two computations of a value must be: the one table by dtype, and the comparisons that
// use it. Every comparison is written so that NaN fails. Loosening a number needs a reason.
#pragma once

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "core/tensor/tensor.h"

namespace fathom::support {

struct Tolerance {
  double epsilon, relative, absolute;
};

[[nodiscard]] constexpr Tolerance tolerance(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return {2.2e-16, 1e-12, 1e-13};
    case DType::kBF16:
      return {3.9e-3, 1e-2, 1e-2};
    default:
      return {1.2e-7, 1e-5, 1e-6};
  }
}

[[nodiscard]] inline double element(const Tensor& t, int64_t r, int64_t c) {
  return visit_float(t.dtype(), [&]<class T>() { return double(t.row<T>(r)[c]); });
}

[[nodiscard]] inline double norm_of(const Tensor& t) {
  double sum = 0;
  for (int64_t r = 0; r < t.rows(); ++r)
    for (int64_t c = 0; c < t.cols(); ++c) sum += element(t, r, c) * element(t, r, c);
  return std::sqrt(sum);
}

// |got - want| <= allowed(r, c) for every element.
template <class Allowed>
[[nodiscard]] ::testing::AssertionResult is_within(const Tensor& got, const Tensor& want,
                                                   const Allowed& allowed) {
  if (!got.same_shape(want))
    return ::testing::AssertionFailure() << "got " << got << ", expected " << want;
  for (int64_t r = 0; r < got.rows(); ++r) {
    for (int64_t c = 0; c < got.cols(); ++c) {
      const double a = element(got, r, c), b = element(want, r, c);
      if (!(std::abs(a - b) <= allowed(r, c)))
        return ::testing::AssertionFailure()
               << "element (" << r << ", " << c << ") of " << got << ": got " << a << ", expected "
               << b << ", off by " << a - b << ", allowed " << allowed(r, c);
    }
  }
  return ::testing::AssertionSuccess();
}

// Element by element, relative plus absolute, by the dtype of `got`.
[[nodiscard]] inline ::testing::AssertionResult is_near(const Tensor& got, const Tensor& want) {
  const Tolerance t = tolerance(got.dtype());
  return is_within(got, want, [&](int64_t r, int64_t c) {
    return t.absolute + t.relative * std::abs(element(want, r, c));
  });
}

// A matrix product: |error| <= 8 eps (|A| |B|), `magnitude` being |A| |B|.
[[nodiscard]] inline ::testing::AssertionResult is_product_near(const Tensor& got,
                                                                const Tensor& want,
                                                                const Tensor& magnitude) {
  const double factor = 8 * tolerance(got.dtype()).epsilon;
  return is_within(got, want,
                   [&](int64_t r, int64_t c) { return factor * element(magnitude, r, c); });
}

// ||a - b|| <= relative ||b|| + absolute
[[nodiscard]] inline ::testing::AssertionResult is_norm_near(const Tensor& got, const Tensor& want,
                                                             double relative, double absolute) {
  if (!got.same_shape(want))
    return ::testing::AssertionFailure() << "got " << got << ", expected " << want;
  double squares = 0;
  for (int64_t r = 0; r < got.rows(); ++r) {
    for (int64_t c = 0; c < got.cols(); ++c) {
      const double d = element(got, r, c) - element(want, r, c);
      squares += d * d;
    }
  }
  const double allowed = relative * norm_of(want) + absolute;
  if (!(std::sqrt(squares) <= allowed))
    return ::testing::AssertionFailure()
           << "||a - b|| = " << std::sqrt(squares) << ", allowed " << allowed
           << ", ||b|| = " << norm_of(want) << ", of which " << absolute << " whatever ||b||";
  return ::testing::AssertionSuccess();
}

// A gradient tensor: ||a - b|| <= r ||b|| + r/1000 ||whole gradient||. A key bias has gradient zero
// in theory and noise in practice; the second term is for those.
[[nodiscard]] inline ::testing::AssertionResult is_gradient_near(const Tensor& got,
                                                                 const Tensor& want,
                                                                 double whole_norm) {
  const double relative = tolerance(got.dtype()).relative;
  return is_norm_near(got, want, relative, relative / 1000 * whole_norm);
}

[[nodiscard]] inline ::testing::AssertionResult has_same_bits(const Tensor& a, const Tensor& b) {
  if (!a.same_shape(b) || a.dtype() != b.dtype())
    return ::testing::AssertionFailure() << a << " against " << b;
  const size_t row_bytes = size_t(a.cols() * size_of(a.dtype()));
  for (int64_t r = 0; r < a.rows(); ++r) {
    if (std::memcmp(a.row<char>(0) + r * a.stride() * size_of(a.dtype()),
                    b.row<char>(0) + r * b.stride() * size_of(b.dtype()), row_bytes) == 0)
      continue;
    for (int64_t c = 0; c < a.cols(); ++c)
      if (element(a, r, c) != element(b, r, c))
        return ::testing::AssertionFailure()
               << "element (" << r << ", " << c << ") of " << a << ": " << element(a, r, c)
               << " against " << element(b, r, c);
    return ::testing::AssertionFailure() << "row " << r << " differs in a NaN or a sign of zero";
  }
  return ::testing::AssertionSuccess();
}

}  // namespace fathom::support
