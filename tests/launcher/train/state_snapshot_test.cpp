#include "launcher/train/state_snapshot.h"

#include <cstdlib>

#include "tests/launcher/train/small_run.h"

namespace fathom::launcher {
namespace {

using Arrays = std::map<std::string, std::vector<float>>;

// The state after some steps of one rank.
Arrays state_after(int64_t steps) {
  const Config config = small_config();
  const data::PreparedData data = small_data();
  Arrays out;
  on_one_rank([&](dist::Communicator& group) {
    SmallTraining training(config, data.train, group);
    for (int64_t step = 1; step <= steps; ++step) (void)training.train(step);
    out = arrays_of(training);
  });
  return out;
}

struct Seen {
  Arrays arrays;
  int64_t updates = 0;
};

Seen seen_by(StateSnapshot& snapshot) {
  checkpoint::SavingArchive archive;
  snapshot.visit(archive);
  return {.arrays = arrays_of(archive),
          .updates = std::get<int64_t>(archive.values().at("optimizer/updates"))};
}

TEST(StateSnapshot, IsOfTheStepAtWhichItBeganWhileTheNextOneRuns) {
  const Config config = small_config();
  const data::PreparedData data = small_data();
  const Arrays expected = state_after(2);
  on_one_rank([&](dist::Communicator& group) {
    SmallTraining training(config, data.train, group);
    StateSnapshot snapshot(training.store(), training.adam, training.sharding, true);
    for (int64_t step = 1; step <= 2; ++step) (void)training.train(step);

    snapshot.begin();
    const StepGradient gradient = training.gradient(3);
    snapshot.hold_updates();
    (void)training.update(gradient, 3);

    const Seen seen = seen_by(snapshot);
    EXPECT_EQ(seen.arrays, expected);
    EXPECT_EQ(seen.updates, 2);
    EXPECT_NE(arrays_of(training), expected);
  });
}

// On the guard device a queue runs nothing before it must, or one of them runs ahead. It is slow:
// the steps here have no forward and backward, and a gradient of equal numbers.
class SnapshotOnGuard : public ::testing::TestWithParam<const char*> {
 protected:
  template <class F>
  void on_guard(const F& f) const {
    ::setenv("FATHOM_GUARD_SCHEDULE", GetParam(), 1);
    on_one_rank([&](dist::Communicator& group) {
      SmallTraining training(config_, data_.train, group,
                             tensor::open_device_library(GUARD_DEVICE, {.threads = 1}));
      StateSnapshot snapshot(training.store(), training.adam, training.sharding, true);
      update(training);
      f(training, snapshot);
    });
  }
  static void update(SmallTraining& training) {
    Context& context = training.device->compute();
    const StepGradient gradient = {
        .gradient = context.allocate(1, training.store().size(), DType::kF32),
        .losses = context.allocate(training.config.batch.shards, 2, DType::kF64),
        .blocks = {}};
    context.run(&kernels::Kernels::fill, {.y = gradient.gradient, .value = 1});
    (void)training.updater.apply(gradient, 10, 0.01);
  }

  Config config_ = small_config();
  data::PreparedData data_ = small_data();
};

TEST_P(SnapshotOnGuard, IsTakenBeforeTheNextUpdate) {
  on_guard([](SmallTraining& training, StateSnapshot& snapshot) {
    const Arrays expected = arrays_of(training);

    snapshot.begin();
    snapshot.hold_updates();
    update(training);

    EXPECT_EQ(seen_by(snapshot).arrays, expected);
    EXPECT_NE(arrays_of(training), expected);
  });
}

TEST_P(SnapshotOnGuard, IsThereOnceItsCopiesAreWaitedFor) {
  on_guard([](SmallTraining& training, StateSnapshot& snapshot) {
    snapshot.begin();
    snapshot.synchronise();

    EXPECT_EQ(seen_by(snapshot).arrays, arrays_of(training));
  });
}

// Nothing has waited for the update that is to be seen.
TEST_P(SnapshotOnGuard, IsOfTheUpdateThatIsStillQueued) {
  on_guard([](SmallTraining& training, StateSnapshot& snapshot) {
    Context& context = training.device->compute();
    const Tensor gradient = context.allocate(1, training.store().size(), DType::kF32);
    const Tensor control = context.allocate(1, kernels::kControlValues, DType::kF64);
    context.run(&kernels::Kernels::fill, {.y = gradient, .value = 1});
    context.run(&kernels::Kernels::fill, {.y = control.columns(3, 1), .value = 1});  // the scale
    training.adam.step(gradient, control, 0.01);
    training.adam.count_update();

    snapshot.begin();
    snapshot.synchronise();

    EXPECT_EQ(seen_by(snapshot).arrays, arrays_of(training));
  });
}

INSTANTIATE_TEST_SUITE_P(Schedules, SnapshotOnGuard,
                         ::testing::Values("late", "early:0", "early:1", "early:2"));

TEST(StateSnapshot, BringsTheMomentsOfAllRanksToTheFirst) {
  Config config = small_config();
  config.dist.shard_optimizer = true;
  const data::PreparedData data = small_data();
  const Arrays expected = state_after(2);
  dist::run_ranks(3, [&](dist::Communicator& group) {
    const bool is_root = group.rank() == 0;
    SmallTraining training(config, data.train, group);
    StateSnapshot snapshot(training.store(), training.adam, training.sharding, is_root);
    for (int64_t step = 1; step <= 2; ++step) (void)training.train(step);

    snapshot.begin();
    const StepGradient gradient = training.gradient(3);
    snapshot.hold_updates();
    (void)training.update(gradient, 3);

    if (is_root) {
      EXPECT_EQ(seen_by(snapshot).arrays, expected);
    }
  });
}

TEST(StateSnapshot, CanBeTakenAgain) {
  const Config config = small_config();
  const data::PreparedData data = small_data();
  on_one_rank([&](dist::Communicator& group) {
    SmallTraining training(config, data.train, group);
    StateSnapshot snapshot(training.store(), training.adam, training.sharding, true);
    for (int64_t step = 1; step <= 2; ++step) {
      (void)training.train(step);
      snapshot.begin();
      snapshot.synchronise();
    }

    const Seen seen = seen_by(snapshot);
    EXPECT_EQ(seen.arrays, arrays_of(training));
    EXPECT_EQ(seen.updates, 2);
  });
}

}  // namespace
}  // namespace fathom::launcher
