#include "core/observe/parameter_probe.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/support/devices.h"
#include "tests/support/layer_statistics.h"
#include "tests/support/tolerance.h"

namespace fathom::observe {
namespace {

// Two blocks of a decoder with three parameters, and one that belongs to neither.
class Statistics : public ::testing::TestWithParam<DType> {
 protected:
  Statistics()
      : device_(GetParam() == DType::kF32 ? tensor::make_cpu_device(2)
                                          : tensor::make_reference_device()),
        store_(*device_, GetParam()) {
    store_.add("embedding.weight", Role::kEmbedding, {3, 2});
    store_.add("decoder.1.self_attention.norm.gain", Role::kNormGain, {2});
    store_.add("decoder.1.self_attention.qkv.weight", Role::kAttentionIn, {35, 2});
    store_.add("decoder.1.feed_forward.fc1.bias", Role::kBias, {5});
    store_.freeze();
    gradient_ = support::zeros(1, store_.size(), GetParam());
    fill(gradient_, "embedding.weight", 9);
  }
  void set(const Tensor& flat, const std::string& name, int64_t i, double value) {
    visit_float(GetParam(),
                [&]<class T>() { flat.data<T>()[store_.find(name).offset + i] = T(value); });
  }
  void fill(const Tensor& flat, const std::string& name, double value) {
    for (int64_t i = 0; i < store_.find(name).numel(); ++i) set(flat, name, i, value);
  }

  // Whose last step had this rate, if there is one.
  std::vector<ParameterSums> measured(const optim::Adam* adam = nullptr, double rate = 0) {
    ParameterProbe probe(store_);
    const Tensor into = support::zeros(1, probe.count(), DType::kF64);
    probe.measure(gradient_, adam, rate, into);
    return probe.read(std::span(into.data<double>(), size_t(into.numel())));
  }
  // Of one block's parameters.
  double statistic(std::string_view name, size_t block, std::span<const ParameterSums> sums) {
    return support::statistic(
        name, {.activations = {}, .parameters = sums_by_block(store_, blocks_, sums)[block]});
  }
  std::vector<NonfiniteBlock> bad_blocks() { return nonfinite_blocks(store_, blocks_, measured()); }

  std::unique_ptr<Device> device_;
  ParameterStore store_;
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
  optim::Adam adam({.epsilon = 1e-30}, store_);
  const double rate = 1e-3;
  adam.step(gradient_, support::update_control(), rate);
  adam.count_update();

  const std::vector<ParameterSums> s = measured(&adam, rate);

  EXPECT_NEAR(statistic("gradient_norm", 0, s), std::sqrt(2 * 9 + 16.), 1e-12);
  EXPECT_NEAR(statistic("gradient_norm", 1, s), std::sqrt(5 * 4.), 1e-12);
  EXPECT_DOUBLE_EQ(statistic("zero_ratio", 0, s), 69. / 72);
  EXPECT_DOUBLE_EQ(statistic("zero_ratio", 1, s), 0);
  // Adam's first step changes what has a gradient by the rate, whatever its size.
  const double w0 = std::sqrt(2 * 0.999 * 0.999 + 0.499 * 0.499 + 69 * 0.25);
  EXPECT_NEAR(statistic("weight_norm", 0, s), w0, 1e-6);
  EXPECT_NEAR(statistic("weight_norm", 1, s), 1.999 * std::sqrt(5.), 1e-6);
  EXPECT_NEAR(statistic("update_ratio", 0, s), rate * std::sqrt(3.) / w0, 1e-7);
  EXPECT_NEAR(statistic("update_ratio", 1, s), rate / 1.999, 1e-7);
}

TEST_P(Statistics, FindTheBlocksThatAreNotFinite) {
  const bool is_f32 = GetParam() == DType::kF32;
  const double largest =
      is_f32 ? double(std::numeric_limits<float>::max()) : std::numeric_limits<double>::max();
  const double smallest = is_f32 ? double(std::numeric_limits<float>::denorm_min())
                                 : std::numeric_limits<double>::denorm_min();
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  EXPECT_TRUE(bad_blocks().empty());
  set(gradient_, "embedding.weight", 1, nan);  // of no block
  set(gradient_, qkv_, 5, largest);
  set(gradient_, qkv_, 6, smallest);
  EXPECT_TRUE(bad_blocks().empty());

  set(gradient_, bias_, 4, nan);
  auto bad = bad_blocks();
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(topology::name_of(bad[0].block), "decoder.1.feed_forward");
  EXPECT_EQ(bad[0].entries, 1);

  set(gradient_, gain_, 0, infinity);
  set(gradient_, qkv_, 69, -infinity);
  bad = bad_blocks();
  ASSERT_EQ(bad.size(), 2u);
  EXPECT_EQ(bad[0].entries, 2);
}

TEST_P(Statistics, OfUpdatesAreZeroBeforeTheFirst) {
  fill(store_.weights(), bias_, 2);
  const std::vector<ParameterSums> s = measured();

  EXPECT_EQ(statistic("update_ratio", 1, s), 0);
  EXPECT_NEAR(statistic("weight_norm", 1, s), 2 * std::sqrt(5.), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Types, Statistics, ::testing::Values(DType::kF32, DType::kF64));

TEST(SquaredNorms, AreThoseOfEachParameterOnAnyNumberOfThreads) {
  std::vector<std::vector<double>> by_threads;
  for (const int threads : {1, 3}) {
    const auto device = tensor::make_cpu_device(threads);
    ParameterStore store(*device, DType::kF32);
    store.add("a", Role::kBias, {3});
    store.add("b", Role::kQuery, {300, 250}, 250, 300);  // several chunks
    store.freeze();
    const Tensor flat = support::normal(1, store.size(), DType::kF32, 1);
    ParameterProbe probe(store);

    const Tensor& got = probe.squared_norms(flat);

    ASSERT_EQ(got.numel(), 2);
    for (int64_t p = 0; p < 2; ++p) {
      const Parameter& parameter = *store.all()[size_t(p)];
      const double norm = support::norm_of(flat.columns(parameter.offset, parameter.numel()));
      EXPECT_NEAR(got.data<double>()[p], norm * norm, 1e-12 * norm * norm);
    }
    by_threads.emplace_back(got.data<double>(), got.data<double>() + 2);
  }
  EXPECT_EQ(by_threads[0], by_threads[1]);
}

}  // namespace
}  // namespace fathom::observe
