#include "core/ops/weighted.h"

#include <gtest/gtest.h>

#include "core/ops/elementwise.h"
#include "tests/support/expect_error.h"
#include "tests/support/random_tensor.h"
#include "tests/support/tolerance.h"

namespace fathom::ops {
namespace {

using support::normal;
using support::throws_with;

class Weighted : public ::testing::Test {
 protected:
  Weighted() { store_.freeze(); }
  Var stream(int64_t rows, uint64_t seed) { return tape_.leaf(normal(rows, 3, DType::kF64, seed)); }

  std::unique_ptr<Device> device_ = tensor::make_reference_device();
  ParameterStore store_{*device_, DType::kF64};
  const Parameter& w_ = store_.add("w", Role::kMixing, {4});
  Tape tape_{*device_, DType::kF64, {}};
};

TEST_F(Weighted, SumRefusesWeightsThatAreNotThereAndStreamsThatDiffer) {
  const Var a = stream(2, 1), b = stream(3, 2);
  const std::vector<Var> both = {a, a}, unlike = {a, b};

  EXPECT_TRUE(throws_with<InvalidArgument>("weighted_sum: 2 streams from entry 3 of w, which has 4",
                                           [&] { (void)weighted_sum(both, w_, 3); }));
  EXPECT_TRUE(throws_with<InvalidArgument>("weighted_sum: 0 streams",
                                           [&] { (void)weighted_sum({}, w_, 0); }));
  EXPECT_TRUE(throws_with<InvalidArgument>("weighted_sum: streams are f64 (2, 3) and f64 (3, 3)",
                                           [&] { (void)weighted_sum(unlike, w_, 0); }));
}

TEST_F(Weighted, ScaleColumnsRefusesAGainOfAnotherWidth) {
  const Var x = stream(2, 1);

  EXPECT_TRUE(throws_with<InvalidArgument>("scale_columns: w has 4 entries, but x is f64 (2, 3)",
                                           [&] { (void)scale_columns(x, w_); }));
}

TEST_F(Weighted, PlainSumAddsInOrder) {
  const std::vector<Var> x = {stream(2, 1), stream(2, 2), stream(2, 3)};

  const Var y = sum(x);

  EXPECT_TRUE(support::has_same_bits(y.value(), add_scaled(add_scaled(x[0], x[1]), x[2]).value()));
  EXPECT_TRUE(throws_with<InvalidArgument>("sum: no terms", [] { (void)sum({}); }));
}

}  // namespace
}  // namespace fathom::ops
