#include "launcher/train/load_state.h"

#include <gmock/gmock.h>

#include "tests/launcher/train/small_run.h"
#include "tests/launcher/train/written_state.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

using Arrays = std::map<std::string, std::vector<float>>;

class LoadStateTest : public ::testing::Test {
 protected:
  [[nodiscard]] Config config(bool shards_optimizer) const {
    Config c = small_config();
    c.run.directory = directory_.path();
    c.dist.shard_optimizer = shards_optimizer;
    return c;
  }
  // Two steps on `ranks` ranks, saved; the run that never stopped makes four.
  void save(int ranks, bool shards_optimizer) const {
    const Config c = config(shards_optimizer);
    dist::run_ranks(ranks, [&](dist::Communicator& group) {
      EventRecorder recorder;
      SmallRun run(c, data_, group, recorder);
      for (int64_t step = 1; step <= 2; ++step) run.train(step);
      TrainState state;
      state.step = 2;
      state.target_tokens = 99;
      run.keeper.finish(state, std::nullopt);
    });
  }
  [[nodiscard]] checkpoint::Checkpoint saved() const {
    return checkpoint::Checkpoint::open(directory_ / "checkpoints" / "step-00000002");
  }
  // Weights after two further steps on `ranks` ranks, which begin from another seed.
  [[nodiscard]] std::vector<float> gone_on(int ranks, bool shards_optimizer) const {
    Config c = config(shards_optimizer);
    return on_ranks(ranks, [&](dist::Communicator& group) {
      SmallTraining training(c, data_.train, group);
      training.model.initialise(5);
      std::optional<checkpoint::Checkpoint> source;
      if (group.rank() == 0) source.emplace(saved());
      TrainState state;
      load_state(source ? &*source : nullptr, training.model, training.adam, training.sharding,
                 state, group);
      EXPECT_EQ(state.step, 2);
      EXPECT_EQ(state.target_tokens, 99);
      EXPECT_EQ(training.adam.updates(), 2);
      for (int64_t step = 3; step <= 4; ++step) (void)training.train(step);
      return floats(training.store().weights());
    });
  }
  [[nodiscard]] std::vector<float> never_stopped() const {
    const Config c = config(false);
    return on_ranks(1, [&](dist::Communicator& group) {
      SmallTraining training(c, data_.train, group);
      for (int64_t step = 1; step <= 4; ++step) (void)training.train(step);
      return floats(training.store().weights());
    });
  }

  support::TemporaryDirectory directory_;
  data::PreparedData data_ = small_data();
};

TEST_F(LoadStateTest, GoesOnAsARunThatNeverStoppedOnAnyNumberOfRanks) {
  save(3, true);
  const std::vector<float> expected = never_stopped();

  for (const int ranks : {1, 2, 3})
    for (const bool shards_optimizer : {false, true})
      EXPECT_EQ(gone_on(ranks, shards_optimizer), expected)
          << ranks << " ranks, sharded: " << shards_optimizer;
}

TEST_F(LoadStateTest, GivesTheWeightsAloneToAnotherRun) {
  save(1, false);
  const Config c = config(true);
  dist::run_ranks(2, [&](dist::Communicator& group) {
    SmallTraining training(c, data_.train, group);
    training.model.initialise(5);
    (void)training.train(1);
    const std::vector<float> moments = floats(training.adam.first());

    const checkpoint::Checkpoint source = saved();
    load_weights(group.rank() == 0 ? &source : nullptr, training.model, group);

    for (const auto& p : training.store().all()) {
      const std::vector<float> weights = floats(training.store().master_of(*p));
      EXPECT_EQ(std::vector<double>(weights.begin(), weights.end()),
                source.values(*source.find("model/" + p->name)));
    }
    EXPECT_EQ(floats(training.adam.first()), moments);
    EXPECT_EQ(training.adam.updates(), 1);
  });
}

TEST_F(LoadStateTest, RefusesACheckpointOfAnotherShape) {
  save(1, false);
  Config wider = small_config();
  wider.model.ffn_width = 14;
  on_one_rank([&](dist::Communicator& group) {
    SmallTraining training(wider, data_.train, group);
    const checkpoint::Checkpoint source = saved();
    TrainState state;

    EXPECT_TRUE(support::throws_with<CheckpointError>("fc1.weight", [&] {
      load_state(&source, training.model, training.adam, training.sharding, state, group);
    }));
    EXPECT_THROW(load_weights(source, training.model), CheckpointError);
  });
}

}  // namespace
}  // namespace fathom::launcher
