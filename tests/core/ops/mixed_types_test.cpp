// A tape in bf16: which values and gradients are wide, and what rounding they get.
#include <gtest/gtest.h>

#include "core/ops/elementwise.h"
#include "core/ops/layer_norm.h"
#include "core/ops/linear.h"
#include "tests/support/devices.h"
#include "tests/support/tolerance.h"

namespace fathom::ops {
namespace {

using kernels::Bf16;
using support::normal;

class MixedTypes : public ::testing::Test {
 protected:
  static Tensor rounded(const Tensor& t) {
    return support::filled(t.rows(), t.cols(), DType::kBF16,
                           [&](int64_t r, int64_t c) { return support::element(t, r, c); });
  }
  static ::testing::AssertionResult has_same_values(const Tensor& got, const Tensor& want) {
    return support::is_within(got, want, [](int64_t, int64_t) { return 0.0; });
  }

  std::unique_ptr<Device> device_ = tensor::make_reference_device();
  Tape tape_{*device_, DType::kBF16, {}};
};

TEST_F(MixedTypes, WidenedIsExactAndInTheWideType) {
  const Var x = tape_.leaf(normal(3, 5, DType::kBF16, 1));

  const Var wide = widened(x);

  EXPECT_EQ(wide.value().dtype(), DType::kF32);
  EXPECT_TRUE(has_same_values(wide.value(), x.value()));
  EXPECT_EQ(widened(wide).value().address(), wide.value().address()) << "it has that type already";
}

TEST_F(MixedTypes, WidenedDoesNothingWhereTheTapeIsWide) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    Tape tape(*device_, dtype, {});
    const Var x = tape.leaf(normal(3, 5, dtype, 1));
    EXPECT_EQ(widened(x).value().address(), x.value().address());
  }
}

TEST_F(MixedTypes, AddScaledStaysInTheTypeOfItsFirstInput) {
  const Var narrow = tape_.leaf(normal(3, 5, DType::kBF16, 1)),
            wide = tape_.leaf(normal(3, 5, DType::kF32, 2));

  const Var sum = add_scaled(wide, narrow), other = add_scaled(narrow, wide);

  EXPECT_EQ(sum.value().dtype(), DType::kF32);
  EXPECT_EQ(other.value().dtype(), DType::kBF16);
  EXPECT_TRUE(has_same_values(other.value(), rounded(sum.value())));
}

// The dual stream of ResiDual, with a norm at its end.
TEST_F(MixedTypes, EveryGradientArrivesInTheTypeOfItsVariable) {
  ParameterStore store(*device_, DType::kBF16);
  const Parameter& gain = store.add("gain", Role::kNormGain, {5});
  const Parameter& bias = store.add("bias", Role::kNormBias, {5});
  const Parameter& w = store.add("w", Role::kQuery, {5, 5}, 5, 5);
  store.freeze();
  const Tensor gradient = support::zeros(1, store.size(), DType::kF32);
  store.bind_gradients(gradient);
  device_->compute().copy(store.weights(), normal(1, store.size(), DType::kF32, 9));
  store.refresh_working();
  EXPECT_EQ(w.value.dtype(), DType::kBF16);
  EXPECT_EQ(gain.value.dtype(), DType::kF32);
  EXPECT_EQ(w.grad.dtype(), DType::kF32);
  const Var x = tape_.leaf(normal(3, 5, DType::kBF16, 1)),
            stream = tape_.leaf(normal(3, 5, DType::kF32, 2));

  const Var o = linear(x, w, nullptr);
  const Var dual = add_scaled(add_scaled(stream, o), x, 1, 0.5);
  const Var y = layer_norm(dual, gain, bias, 1e-5);
  EXPECT_EQ(o.value().dtype(), DType::kBF16);
  EXPECT_EQ(dual.value().dtype(), DType::kF32);
  EXPECT_EQ(y.value().dtype(), DType::kBF16);
  tape_.backward(y, normal(3, 5, DType::kBF16, 3));

  EXPECT_EQ(x.grad().dtype(), DType::kBF16);
  EXPECT_EQ(stream.grad().dtype(), DType::kF32);
  EXPECT_GT(support::norm_of(x.grad()), 0);
  EXPECT_GT(support::norm_of(w.grad), 0);
  EXPECT_GT(support::norm_of(gain.grad), 0);
}

TEST_F(MixedTypes, AGradientIsRoundedToTheTypeOfItsVariable) {
  const Var narrow = tape_.leaf(normal(3, 5, DType::kBF16, 1)),
            wide = tape_.leaf(normal(3, 5, DType::kF32, 2));
  const Tensor dy = normal(3, 5, DType::kF32, 3);

  tape_.backward(add_scaled(wide, narrow), dy);

  EXPECT_EQ(wide.grad().address(), dy.address()) << "not a copy";
  EXPECT_EQ(narrow.grad().dtype(), DType::kBF16);
  EXPECT_TRUE(has_same_values(narrow.grad(), rounded(dy)));
}

TEST_F(MixedTypes, GradientsOfBothTypesAddUpInTheTypeOfTheirVariable) {
  const Var narrow = tape_.leaf(normal(3, 5, DType::kBF16, 1)),
            wide = tape_.leaf(normal(3, 5, DType::kF32, 2));
  const Tensor a = normal(3, 5, DType::kF32, 3), b = normal(3, 5, DType::kBF16, 4);

  for (const Var& v : {narrow, wide}) {
    tape_.accumulate(v, a);
    tape_.accumulate(v, b);
  }

  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t c = 0; c < 5; ++c) {
      const float fa = a.row<float>(r)[c], fb = float(b.row<Bf16>(r)[c]);
      EXPECT_EQ(wide.grad().row<float>(r)[c], fa + fb);
      EXPECT_EQ(narrow.grad().row<Bf16>(r)[c].bits, Bf16(float(Bf16(fa)) + fb).bits);
    }
  }
  EXPECT_EQ(narrow.grad().dtype(), DType::kBF16);
  EXPECT_EQ(wide.grad().dtype(), DType::kF32);
}

}  // namespace
}  // namespace fathom::ops
