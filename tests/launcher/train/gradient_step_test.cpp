#include "launcher/train/gradient_step.h"

#include <algorithm>
#include <cmath>

#include "tests/launcher/train/training_support.h"

namespace fathom::launcher {
namespace {

// The second step's gradient, the losses of the shards and what was seen of the blocks.
struct Sums {
  std::vector<float> gradient;
  std::vector<double> losses, blocks;
  bool operator==(const Sums&) const = default;
};

Sums sums(const Config& config, int ranks) {
  const data::PreparedData data = small_data();
  return on_ranks(ranks, [&](dist::Communicator& group) {
    SmallTraining training(config, data.train, group);
    const StepGradient gradient = training.gradient(2, true);
    training.device->compute().synchronise();
    return Sums{.gradient = floats(gradient.gradient),
                .losses = doubles(gradient.losses),
                .blocks = doubles(gradient.blocks)};
  });
}

double largest(const std::vector<float>& values) {
  float most = 0;
  for (const float v : values) most = std::max(most, std::abs(v));
  return double(most);
}

void expect_near(const std::vector<float>& values, const std::vector<float>& expected) {
  const double tolerance = 1e-5 * largest(expected);
  ASSERT_GT(tolerance, 0);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance) << "entry " << i;
}

TEST(GradientStep, ByTreeGivesTheSameBitsOnAnyNumberOfRanks) {
  Config config = small_config();
  const Sums alone = sums(config, 1);
  ASSERT_GT(largest(alone.gradient), 0);

  for (const dist::Overlap overlap : {dist::Overlap::kOff, dist::Overlap::kOn}) {
    config.dist.overlap = overlap;
    for (const int ranks : {2, 3}) EXPECT_EQ(sums(config, ranks), alone) << ranks << " ranks";
  }
}

TEST(GradientStep, FastIsTheTreesSumUpToRounding) {
  Config config = small_config();
  const Sums tree = sums(config, 1);
  config.dist.reduction = dist::Reduction::kFast;

  for (const int ranks : {1, 2, 3}) {
    const Sums fast = sums(config, ranks);

    expect_near(fast.gradient, tree.gradient);
    for (size_t i = 0; i < fast.losses.size(); ++i)
      EXPECT_NEAR(fast.losses[i], tree.losses[i], 1e-5 * std::abs(tree.losses[i]));
  }
}

TEST(GradientStep, OfAShardInSeveralMicroBatchesIsTheSameUpToRounding) {
  Config config = small_config();
  config.dist.reduction = dist::Reduction::kFast;
  config.batch.shards = 2;
  config.batch.micro_tokens = 64;
  const Sums whole = sums(config, 1);
  config.batch.micro_tokens = 10;

  for (const int ranks : {1, 2}) {
    const Sums cut = sums(config, ranks);

    expect_near(cut.gradient, whole.gradient);
    for (size_t i = 0; i < cut.losses.size(); ++i)
      EXPECT_NEAR(cut.losses[i], whole.losses[i], 1e-5 * std::abs(whole.losses[i]));
    // The same rows are sampled, the first 64 of a shard.
    ASSERT_EQ(cut.blocks.size(), whole.blocks.size());
    for (size_t i = 0; i < cut.blocks.size(); ++i)
      EXPECT_NEAR(cut.blocks[i], whole.blocks[i], 1e-5 * std::abs(whole.blocks[i])) << i;
  }
}

TEST(GradientStep, TellsOfEveryMicroBatch) {
  Config config = small_config();
  const data::PreparedData data = small_data();
  on_one_rank([&](dist::Communicator& group) {
    SmallTraining training(config, data.train, group);
    int told = 0;
    StepOptions options = step_options(config, training.sharding);
    options.on_micro_batch = [&told] { ++told; };
    GradientStep step(training.model, *training.device, data.train, group,
                      training.sharding.ownership(), options);

    (void)step.run(training.batch(1), 1, false);

    EXPECT_EQ(told, 6) << "one for each shard";
  });
}

double loss_at(SmallTraining& training, const std::vector<float>& weights) {
  std::copy(weights.begin(), weights.end(), training.store().weights().data<float>());
  const Tensor losses = training.gradient(1).losses;
  double loss = 0;
  for (int64_t shard = 0; shard < losses.rows(); ++shard) loss += losses.row<double>(shard)[0];
  return loss / double(training.batch(1).target_tokens);
}

// Down the gradient g the loss falls by h |g|^2.
TEST(GradientStep, IsThatOfTheSmoothedLossPerTargetToken) {
  const Config config = small_config();
  const data::PreparedData data = small_data();
  on_one_rank([&](dist::Communicator& group) {
    SmallTraining training(config, data.train, group);
    const std::vector<float> gradient = floats(training.gradient(1).gradient);
    const std::vector<float> weights = floats(training.store().weights());
    double square = 0;
    for (const float g : gradient) square += double(g) * double(g);
    const double h = 0.005 / std::sqrt(square);
    const auto moved = [&](double by) {
      std::vector<float> out = weights;
      for (size_t i = 0; i < out.size(); ++i) out[i] += float(by * double(gradient[i]));
      return out;
    };

    const double fall = loss_at(training, moved(-h)) - loss_at(training, moved(h));

    EXPECT_NEAR(fall / (-2 * h * square), 1, 0.01);
  });
}

TEST(GradientStep, HasTheDropoutOfItsStep) {
  Config config = small_config();
  const data::PreparedData data = small_data();
  for (const double dropout : {0.0, 0.5}) {
    config.model.dropout = dropout;
    on_one_rank([&](dist::Communicator& group) {
      SmallTraining training(config, data.train, group);
      const data::Batch batch = training.batch(1);
      const auto gradient = [&](int64_t step) {
        return floats(training.gradients.run(batch, step, false).gradient);
      };
      EXPECT_EQ(gradient(1), gradient(1));
      EXPECT_EQ(gradient(1) == gradient(2), dropout == 0);
    });
  }
}

TEST(GradientStep, LooksAtBlocksOnlyWhenAsked) {
  const Config config = small_config();
  const data::PreparedData data = small_data();
  on_one_rank([&](dist::Communicator& group) {
    SmallTraining training(config, data.train, group);

    EXPECT_TRUE(training.gradient(1, false).blocks.is_empty());
    EXPECT_EQ(training.gradient(1, true).blocks.rows(), config.batch.shards);
  });
}

TEST(GradientStep, TellsWhatEveryRankDid) {
  const Config config = small_config();
  const data::PreparedData data = small_data();
  for (const int ranks : {1, 2, 3})
    dist::run_ranks(ranks, [&](dist::Communicator& group) {
      SmallTraining training(config, data.train, group);
      (void)training.train(1);

      const std::vector<RankWork> work = training.gradients.ranks();

      ASSERT_EQ(work.size(), size_t(ranks));
      double tokens = 0;
      for (const RankWork& rank : work) {
        tokens += rank.tokens;
        EXPECT_GT(rank.seconds, 0);
      }
      const data::Batch batch = training.batch(1);
      EXPECT_EQ(tokens, double(batch.source_tokens + batch.target_tokens));
      const StepTiming timing = training.gradients.timing();
      EXPECT_GT(timing.forward_seconds, 0);
      EXPECT_GT(timing.backward_seconds, 0);
      EXPECT_GE(timing.reduce_seconds, 0);
      EXPECT_LE(timing.forward_seconds + timing.backward_seconds,
                work[size_t(group.rank())].seconds);
      EXPECT_GT(training.gradients.memory_bytes(),
                training.store().size() * int64_t(sizeof(float)));
    });
}

}  // namespace
}  // namespace fathom::launcher
