#include "launcher/train/layer_report.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "tests/launcher/train/training_support.h"

namespace fathom::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct NamedValues {
  std::vector<std::string> blocks;
  std::vector<double> values;
  bool operator==(const NamedValues&) const = default;
};

// Of the second step.
NamedValues measured(int ranks, bool shards_optimizer) {
  Config config = small_config();
  config.dist.shard_optimizer = shards_optimizer;
  const data::PreparedData data = small_data();
  return on_ranks(ranks, [&](dist::Communicator& group) {
    SmallTraining training(config, data.train, group);
    (void)training.train(1);
    const StepGradient gradient = training.gradient(2, true);
    (void)training.update(gradient, 2);
    NamedValues out;
    for (const observe::LayerRecord& layer :
         training.layers.measure(gradient, config.optimizer.learning_rate)) {
      out.blocks.push_back(topology::name_of(layer.block));
      out.values.insert(out.values.end(), layer.values.begin(), layer.values.end());
    }
    return out;
  });
}

TEST(LayerReport, HasEveryStatisticOfEveryBlock) {
  const NamedValues report = measured(1, false);

  EXPECT_THAT(report.blocks, ElementsAre("encoder.1.self_attention", "encoder.1.feed_forward",
                                         "decoder.1.self_attention", "decoder.1.cross_attention",
                                         "decoder.1.feed_forward"));
  EXPECT_THAT(report.values, SizeIs(5 * observe::layer_statistics().size()));
  for (const double value : report.values) EXPECT_TRUE(std::isfinite(value));
}

TEST(LayerReport, IsTheSameOnAnyNumberOfRanks) {
  const NamedValues alone = measured(1, false);

  for (const int ranks : {2, 3}) {
    EXPECT_EQ(measured(ranks, false), alone) << ranks << " ranks";
    EXPECT_EQ(measured(ranks, true), alone) << ranks << " ranks, sharded";
  }
}

// An update ratio that grows with the rate: the report is of the step's own update.
TEST(LayerReport, IsOfTheUpdateWithTheStepsRate) {
  const Config config = small_config();
  const data::PreparedData data = small_data();
  size_t row = 0;
  while (observe::layer_statistics()[row].name != "update_ratio") ++row;
  on_one_rank([&](dist::Communicator& group) {
    SmallTraining training(config, data.train, group);
    const StepGradient gradient = training.gradient(1, true);
    (void)training.update(gradient, 1);

    const double once = training.layers.measure(gradient, 0.01).at(0).values.at(row);
    const double twice = training.layers.measure(gradient, 0.02).at(0).values.at(row);

    EXPECT_GT(once, 0);
    EXPECT_NEAR(twice / once, 2, 1e-4);
  });
}

// The gradient of the first step with two entries of a parameter poisoned: where nonfinite() sees
// them, and how many.
std::vector<std::string> blamed(const std::string& parameter, int ranks, bool shards_optimizer) {
  Config config = small_config();
  config.dist.shard_optimizer = shards_optimizer;
  const data::PreparedData data = small_data();
  return on_ranks(ranks, [&](dist::Communicator& group) {
    SmallTraining training(config, data.train, group);
    const StepGradient gradient = training.gradient(1);
    const int64_t offset = training.model.parameters().find(parameter).offset;
    gradient.gradient.data<float>()[offset + 1] = std::numeric_limits<float>::quiet_NaN();
    gradient.gradient.data<float>()[offset + 2] = std::numeric_limits<float>::infinity();
    std::vector<std::string> out;
    for (const observe::NonfiniteBlock& found : training.layers.nonfinite(gradient))
      out.push_back(join(topology::name_of(found.block), " ", found.entries));
    return out;
  });
}

TEST(LayerReport, NamesTheBlockWhoseGradientIsNotFinite) {
  for (const int ranks : {1, 2, 3})
    for (const bool shards_optimizer : {false, true}) {
      EXPECT_THAT(blamed("decoder.1.feed_forward.fc1.weight", ranks, shards_optimizer),
                  ElementsAre("decoder.1.feed_forward 2"));
      EXPECT_THAT(blamed("encoder.1.self_attention.out.weight", ranks, shards_optimizer),
                  ElementsAre("encoder.1.self_attention 2"));
    }
}

TEST(LayerReport, BlamesNoBlockForAnEmbedding) {
  EXPECT_THAT(blamed("embedding.weight", 1, false), IsEmpty());
}

}  // namespace
}  // namespace fathom::launcher
