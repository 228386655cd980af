#include "launcher/train/profile_model.h"

#include <algorithm>

#include "tests/launcher/train/training_support.h"

namespace fathom::launcher {
namespace {

struct Weights {
  std::vector<float> initial, profiled;
  bool operator==(const Weights&) const = default;
};

Weights weights(const std::string& topology, int ranks) {
  Config config = small_config();
  config.model.topology = topology;
  const data::PreparedData data = small_data();
  return on_ranks(ranks, [&](dist::Communicator& group) {
    SmallTraining training(config, data.train, group);
    Weights out;
    out.initial = floats(training.store().weights());
    profile_model(config, data.train, training.model, group);
    out.profiled = floats(training.store().weights());
    return out;
  });
}

TEST(ProfileModel, LeavesATopologyAloneThatMeasuresNothing) {
  const Weights residual = weights("residual", 2);

  EXPECT_EQ(residual.profiled, residual.initial);
}

TEST(ProfileModel, SetsWhatAdminMeasuresToTheSameBitsOnAnyNumberOfRanks) {
  const Weights alone = weights("admin", 1);

  EXPECT_NE(alone.profiled, alone.initial);
  for (const int ranks : {2, 3}) EXPECT_EQ(weights("admin", ranks), alone) << ranks << " ranks";
}

std::vector<float> profiled(const std::vector<data::TokenPair>& pairs) {
  Config config = small_config();
  config.model.topology = "admin";
  const data::Dataset data = data::Dataset::from_pairs(pairs, false);
  return on_ranks(1, [&](dist::Communicator& group) {
    SmallTraining training(config, data, group);
    profile_model(config, data, training.model, group);
    return floats(training.store().weights());
  });
}

TEST(ProfileModel, LooksAtTheFirstBatchOfTheFirstEpochAlone) {
  const std::vector<data::TokenPair> pairs = model::random_pairs(48, 2, 20, 2, 7, 1);
  const data::PairLengths lengths = data::Dataset::from_pairs(pairs, false).lengths();
  const Config config = small_config();
  const std::vector<int64_t> first =
      data::EpochPlan(lengths, config.batch, config.run.seed, 0).batch(0).pairs;
  std::vector<data::TokenPair> other_in_it = pairs, other_elsewhere = pairs;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const bool is_in_it = std::ranges::find(first, int64_t(i)) != first.end();
    int32_t& token = (is_in_it ? other_in_it : other_elsewhere)[i].source[0];
    token = token == 2 ? 3 : 2;
  }

  EXPECT_EQ(profiled(other_elsewhere), profiled(pairs));
  EXPECT_NE(profiled(other_in_it), profiled(pairs));
}

}  // namespace
}  // namespace fathom::launcher
