#include "launcher/train/updater.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/launcher/train/training_support.h"

namespace fathom::launcher {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double norm_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += double(v) * double(v);
  return std::sqrt(sum);
}

struct FirstStep {
  std::vector<float> gradient, first_moment;
  Update update;
};

FirstStep first_step(double clip_norm) {
  Config config = small_config();
  config.optimizer.clip_norm = clip_norm;
  const data::PreparedData data = small_data();
  FirstStep out;
  on_one_rank([&](dist::Communicator& group) {
    SmallTraining training(config, data.train, group);
    const StepGradient gradient = training.gradient(1);
    out.gradient = floats(gradient.gradient);
    out.update = training.update(gradient, 1);
    out.first_moment = floats(training.adam.first());
  });
  return out;
}

// Adam starts at zero: its first moment after a step is (1 - beta_1) times what it was given.
void expect_scaled_gradient(const FirstStep& step, double scale) {
  const double factor = scale * (1 - small_config().optimizer.betas[0]);
  for (size_t i = 0; i < step.gradient.size(); ++i)
    ASSERT_NEAR(step.first_moment[i], factor * double(step.gradient[i]),
                1e-6 * std::abs(factor * double(step.gradient[i])))
        << "entry " << i;
}

TEST(Updater, ReportsTheNormOfTheGradientBeforeClipping) {
  const FirstStep step = first_step(1e-3);

  EXPECT_GT(norm_of(step.gradient), 1e-2);
  EXPECT_NEAR(step.update.gradient_norm, norm_of(step.gradient), 1e-9);
}

TEST(Updater, ClipsWhatTheOptimizerIsGiven) {
  const double norm = norm_of(first_step(0).gradient);

  expect_scaled_gradient(first_step(norm / 8), 1.0 / 8);
}

TEST(Updater, LeavesAGradientWithinTheLimitAsItIs) {
  const double norm = norm_of(first_step(0).gradient);

  expect_scaled_gradient(first_step(2 * norm), 1);
  expect_scaled_gradient(first_step(0), 1);
}

// Steps by hand: a gradient of ones, and losses of every shard.
class UpdaterByHand : public ::testing::Test {
 protected:
  Update apply(double entry, double loss, double nll, int64_t target_tokens) {
    Update update;
    on_one_rank([&](dist::Communicator& group) {
      SmallTraining training(config_, data_.train, group);
      (void)training.train(1);  // so that no moment is zero
      before_ = state_of(training);
      Context& context = training.device->compute();
      StepGradient gradient = {
          .gradient = context.allocate(1, training.store().size(), DType::kF32),
          .losses = context.allocate(config_.batch.shards, 2, DType::kF64),
          .blocks = {}};
      std::fill_n(gradient.gradient.data<float>(), training.store().size(), 1.0f);
      gradient.gradient.data<float>()[5] = float(entry);
      for (int64_t shard = 0; shard < config_.batch.shards; ++shard) {
        gradient.losses.row<double>(shard)[0] = double(shard);
        gradient.losses.row<double>(shard)[1] = 10.0 * double(shard);
      }
      gradient.losses.row<double>(2)[0] = loss;
      gradient.losses.row<double>(2)[1] = nll;
      update = training.updater.apply(gradient, target_tokens, 0.01);
      after_ = state_of(training);
    });
    return update;
  }

  static std::vector<float> state_of(SmallTraining& training) {
    std::vector<float> state = floats(training.store().weights());
    for (const Tensor* moments : {&training.adam.first(), &training.adam.second()}) {
      const std::vector<float> values = floats(*moments);
      state.insert(state.end(), values.begin(), values.end());
    }
    state.push_back(float(training.adam.updates()));
    return state;
  }

  Config config_ = small_config();
  data::PreparedData data_ = small_data();
  std::vector<float> before_, after_;
};

TEST_F(UpdaterByHand, DividesTheLossesOfAllShardsByTheTargetTokens) {
  const Update update = apply(1, 2, 20, 30);

  EXPECT_DOUBLE_EQ(update.loss, (0 + 1 + 2 + 3 + 4 + 5) / 30.0);
  EXPECT_DOUBLE_EQ(update.nll, 10 * (0 + 1 + 2 + 3 + 4 + 5) / 30.0);
}

TEST_F(UpdaterByHand, CountsAnUpdateThatWasMade) {
  const Update update = apply(1, 2, 20, 30);

  EXPECT_FALSE(update.is_skipped);
  EXPECT_GT(update.seconds, 0);
  EXPECT_NE(before_, after_);
  EXPECT_EQ(after_.back(), 2);
}

TEST_F(UpdaterByHand, SkipsAGradientThatIsNotFinite) {
  for (const double entry : {kInfinity, -kInfinity, kNaN}) {
    const Update update = apply(entry, 2, 20, 30);

    EXPECT_TRUE(update.is_skipped);
    EXPECT_FALSE(std::isfinite(update.gradient_norm));
    EXPECT_EQ(before_, after_) << entry;
  }
}

TEST_F(UpdaterByHand, SkipsALossThatIsNotFinite) {
  for (const double loss : {kInfinity, kNaN}) {
    const Update update = apply(1, loss, 20, 30);

    EXPECT_TRUE(update.is_skipped);
    EXPECT_EQ(before_, after_) << loss;
  }
}

std::vector<float> trained_weights(int ranks, bool shards_optimizer, dist::Reduction reduction) {
  Config config = small_config();
  config.optimizer.clip_norm = 0.5;
  config.dist.shard_optimizer = shards_optimizer;
  config.dist.reduction = reduction;
  const data::PreparedData data = small_data();
  return on_ranks(ranks, [&](dist::Communicator& group) {
    SmallTraining training(config, data.train, group);
    for (int64_t step = 1; step <= 3; ++step)
      EXPECT_GT(training.train(step).gradient_norm, config.optimizer.clip_norm);
    return floats(training.store().weights());
  });
}

TEST(ShardedUpdater, GivesTheWeightsOfOneRankBitForBit) {
  const std::vector<float> alone = trained_weights(1, false, dist::Reduction::kTree);

  for (const int ranks : {2, 3}) {
    EXPECT_EQ(trained_weights(ranks, false, dist::Reduction::kTree), alone) << ranks << " ranks";
    EXPECT_EQ(trained_weights(ranks, true, dist::Reduction::kTree), alone)
        << ranks << " ranks, sharded";
  }
}

}  // namespace
}  // namespace fathom::launcher
