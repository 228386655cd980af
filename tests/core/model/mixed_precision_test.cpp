// Whole models in bf16 on the reference device: they train, close to the same model in f32, and
// keep masters and working weights in step.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/core/model/model_support.h"
#include "tests/support/tolerance.h"

namespace fathom::model {
namespace {

class MixedPrecision : public ::testing::TestWithParam<std::string> {
 protected:
  static ModelConfig config() {
    ModelConfig c = small_config(GetParam(), 2, 2);
    c.width = 24;
    c.heads = 3;
    c.ffn_width = 40;
    return c;
  }
  static data::PackedBatch batch() { return pack_all(random_pairs(6, 2, 23, 2, 9, 1), false); }
  // Losses before each of some updates, and after the last.
  static std::vector<double> train(Model& model, kernels::DropoutStep dropout = {}) {
    const auto device = tensor::make_reference_device();
    std::vector<double> losses;
    for (int step = 0; step < 9; ++step) {
      if (step > 0) model.update(3e-3);
      losses.push_back(model.loss(*device, batch(), dropout));
    }
    return losses;
  }
};

TEST_P(MixedPrecision, TrainsAsInF32) {
  Model wide(config(), DType::kF32), narrow(config(), DType::kBF16);
  EXPECT_TRUE(support::has_same_bits(narrow.transformer.parameters().weights(),
                                     wide.transformer.parameters().weights()));

  const std::vector<double> want = train(wide), got = train(narrow);

  EXPECT_LT(want.back(), 0.95 * want.front());
  EXPECT_LT(got.back(), 0.95 * got.front());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 0.02 * want[i]) << "after update " << i;
  EXPECT_NE(got.front(), want.front()) << "nothing was rounded";
}

TEST_P(MixedPrecision, HasTheGradientOfF32) {
  ModelConfig c = config();
  c.dropout = 0.2;
  c.attention_dropout = c.activation_dropout = 0.1;
  Model wide(c, DType::kF32), narrow(c, DType::kBF16);
  const auto device = tensor::make_reference_device();
  const kernels::DropoutStep step = {.seed = 3, .step = 4};

  const double want = wide.loss(*device, batch(), step), got = narrow.loss(*device, batch(), step);

  EXPECT_NEAR(got, want, 0.02 * want);
  EXPECT_TRUE(support::is_norm_near(narrow.gradient, wide.gradient, 0.05, 0));
}

TEST_P(MixedPrecision, UpdatesTheMastersAndRoundsThemForTheModel) {
  Model model(config(), DType::kBF16);
  (void)train(model);

  const ParameterStore& store = model.transformer.parameters();
  for (const auto& p : store.all()) {
    const Tensor master = store.master_of(*p);
    ASSERT_EQ(master.dtype(), DType::kF32);
    EXPECT_EQ(p->value.dtype(), p->is_matrix() ? DType::kBF16 : DType::kF32) << p->name;
    int64_t off = 0, inexact = 0;
    for (int64_t r = 0; r < p->value.rows(); ++r) {
      for (int64_t col = 0; col < p->value.cols(); ++col) {
        const float w = master.data<float>()[r * p->value.cols() + col];
        const float used = float(kernels::load(p->value, r, col));
        off += used != (p->is_matrix() ? float(kernels::Bf16(w)) : w);
        inexact += used != w;
      }
    }
    EXPECT_EQ(off, 0) << p->name;
    EXPECT_EQ(inexact > 0, p->is_matrix()) << p->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Topologies, MixedPrecision,
                         ::testing::ValuesIn(topology::topology_names()), [](const auto& topology) {
                           std::string name = topology.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace fathom::model
