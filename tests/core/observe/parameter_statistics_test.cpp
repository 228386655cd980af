#include "core/observe/parameter_statistics.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace fathom::observe {
namespace {

// Two blocks of a decoder with three parameters, and one that belongs to neither.
class Statistics : public ::testing::TestWithParam<DType> {
 protected:
  Statistics() : store_(GetParam()), pool_(2) {
    store_.add("embedding.weight", Role::kEmbedding, {3, 2});
    store_.add("decoder.1.self_attention.norm.gain", Role::kNormGain, {2});
    store_.add("decoder.1.self_attention.qkv.weight", Role::kAttentionIn, {35, 2});
    store_.add("decoder.1.feed_forward.fc1.bias", Role::kBias, {5});
    store_.freeze();
    gradient_ = autograd::allocate_flat(store_.size(), GetParam());
    fill(gradient_, "embedding.weight", 9);
  }
  void set(const Tensor& flat, const std::string& name, int64_t i, double value) {
    visit_float(GetParam(),
                [&]<class T>() { flat.data<T>()[store_.find(name).offset + i] = T(value); });
  }
  void fill(const Tensor& flat, const std::string& name, double value) {
    for (int64_t i = 0; i < store_.find(name).numel(); ++i) set(flat, name, i, value);
  }

  ParameterStore store_;
  ThreadPool pool_;
  Tensor gradient_;
  std::vector<topology::BlockContext> blocks_ = {
      {.stack = topology::StackKind::kDecoder, .kind = topology::BlockKind::kSelfAttention},
      {.stack = topology::StackKind::kDecoder, .kind = topology::BlockKind::kFeedForward}};
  const std::string gain_ = "decoder.1.self_attention.norm.gain",
                    qkv_ = "decoder.1.self_attention.qkv.weight",
                    bias_ = "decoder.1.feed_forward.fc1.bias";
};

TEST_P(Statistics, AreThoseOfTheWholeBlock) {
  fill(gradient_, gain_, 3);
  set(gradient_, qkv_, 0, 4);  // its other 69 entries stay 0
  fill(gradient_, bias_, 2);
  fill(store_.weights(), gain_, 1);
  fill(store_.weights(), qkv_, 0.5);
  fill(store_.weights(), bias_, 2);
  optim::Adam adam({.epsilon = 1e-30}, store_.size(), GetParam());
  const double rate = 1e-3;
  adam.step(pool_, store_.weights(), gradient_, rate, 1);

  const std::vector<ParameterStatistics> s =
      parameter_statistics(pool_, store_, blocks_, gradient_,
                           optim::squared_norms(pool_, store_, gradient_), adam, rate);

  ASSERT_EQ(s.size(), 2u);
  EXPECT_NEAR(s[0].gradient_norm, std::sqrt(2 * 9 + 16.), 1e-12);
  EXPECT_NEAR(s[1].gradient_norm, std::sqrt(5 * 4.), 1e-12);
  EXPECT_DOUBLE_EQ(s[0].zero_ratio, 69. / 72);
  EXPECT_DOUBLE_EQ(s[1].zero_ratio, 0);
  // Adam's first step changes what has a gradient by the rate, whatever its size.
  const double w0 = std::sqrt(2 * 0.999 * 0.999 + 0.499 * 0.499 + 69 * 0.25);
  EXPECT_NEAR(s[0].weight_norm, w0, 1e-6);
  EXPECT_NEAR(s[1].weight_norm, 1.999 * std::sqrt(5.), 1e-6);
  EXPECT_NEAR(s[0].update_ratio, rate * std::sqrt(3.) / w0, 1e-7);
  EXPECT_NEAR(s[1].update_ratio, rate / 1.999, 1e-7);
}

TEST_P(Statistics, FindTheBlocksThatAreNotFinite) {
  visit_float(GetParam(), [&]<class T>() {
    using Limits = std::numeric_limits<T>;
    EXPECT_TRUE(nonfinite_blocks(pool_, store_, blocks_, gradient_).empty());
    set(gradient_, "embedding.weight", 1, Limits::quiet_NaN());  // of no block
    set(gradient_, qkv_, 5, Limits::max());
    set(gradient_, qkv_, 6, Limits::denorm_min());
    EXPECT_TRUE(nonfinite_blocks(pool_, store_, blocks_, gradient_).empty());

    set(gradient_, bias_, 4, Limits::quiet_NaN());
    auto bad = nonfinite_blocks(pool_, store_, blocks_, gradient_);
    ASSERT_EQ(bad.size(), 1u);
    EXPECT_EQ(topology::name_of(bad[0].block), "decoder.1.feed_forward");
    EXPECT_EQ(bad[0].entries, 1);

    set(gradient_, gain_, 0, Limits::infinity());
    set(gradient_, qkv_, 69, -Limits::infinity());
    bad = nonfinite_blocks(pool_, store_, blocks_, gradient_);
    ASSERT_EQ(bad.size(), 2u);
    EXPECT_EQ(bad[0].entries, 2);
  });
}

INSTANTIATE_TEST_SUITE_P(Types, Statistics, ::testing::Values(DType::kF32, DType::kF64));

}  // namespace
}  // namespace fathom::observe
