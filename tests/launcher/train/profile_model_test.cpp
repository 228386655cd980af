#include "launcher/train/profile_model.h"

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

}  // namespace
}  // namespace fathom::launcher
