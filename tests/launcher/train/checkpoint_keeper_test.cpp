#include "launcher/train/checkpoint_keeper.h"

#include <condition_variable>
#include <filesystem>
#include <limits>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>

#include "checkpoint/resolve.h"
#include "tests/launcher/train/small_run.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TrainState at_step(int64_t step) {
  TrainState state;
  state.step = step;
  return state;
}

checkpoint::ValidationResult of_loss(double value) {
  return {.data = "d", .metric = {{.name = "validation_loss", .value = value}}, .figures = {}};
}

// A commit syncs the histories first; here it waits until it is let through.
class Gate final : public EventRecorder {
 public:
  void sync() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
};

class CheckpointKeeperTest : public ::testing::Test {
 protected:
  CheckpointKeeperTest() { config_.run.directory = directory_.path(); }

  // f(run) on one rank.
  template <class F>
  void on(EventRecorder& recorder, const F& f) const {
    on_one_rank([&](dist::Communicator& group) {
      SmallRun run(config_, data_, group, recorder);
      f(run);
    });
  }
  template <class F>
  void on(const F& f) {
    on(recorder_, f);
  }

  [[nodiscard]] std::filesystem::path checkpoints() const { return directory_ / "checkpoints"; }
  [[nodiscard]] checkpoint::Checkpoint saved(int64_t step) const {
    return checkpoint::Checkpoint::open(checkpoints() / checkpoint::step_name(step));
  }
  [[nodiscard]] std::optional<checkpoint::ValidationResult> validation_of(int64_t step) const {
    const checkpoint::Checkpoint checkpoint = saved(step);
    return checkpoint::read_validation(checkpoint.path(), checkpoint.manifest());
  }
  [[nodiscard]] std::vector<std::string> saved_names() const {
    std::vector<std::string> names = support::names_in(checkpoints());
    std::erase_if(names, [](const std::string& name) { return !name.starts_with("step-"); });
    return names;
  }
  // While it is aside every save fails.
  void move_aside() const { std::filesystem::rename(checkpoints(), directory_ / "aside"); }
  void move_back() const { std::filesystem::rename(directory_ / "aside", checkpoints()); }

  // What the loop does after a step until the commit has ended.
  static CommitOutcome settle(SmallRun& run) {
    CommitOutcome outcome = CommitOutcome::kNone;
    while (outcome == CommitOutcome::kNone) {
      std::this_thread::yield();
      outcome = agree(run.group, {.commit = run.keeper.poll()}).commit;
      run.keeper.settle(outcome);
    }
    return outcome;
  }

  support::TemporaryDirectory directory_;
  Config config_ = small_config();
  data::PreparedData data_ = small_data();
  EventRecorder recorder_;
};

TEST_F(CheckpointKeeperTest, SavesEveryFewSteps) {
  config_.checkpoint.every_steps = 3;
  on([](const SmallRun& run) {
    EXPECT_FALSE(run.keeper.is_due(at_step(2)));
    EXPECT_TRUE(run.keeper.is_due(at_step(3)));
    EXPECT_FALSE(run.keeper.is_due(at_step(4)));
    EXPECT_TRUE(run.keeper.is_due(at_step(6)));
  });
  config_.checkpoint.every_steps = 0;
  on([](const SmallRun& run) { EXPECT_FALSE(run.keeper.is_due(at_step(3))); });
}

TEST_F(CheckpointKeeperTest, LaysAValidationBesideTheCheckpointOfItsStep) {
  on([&](SmallRun& run) {
    run.train(1);
    run.keeper.save(at_step(1));
    run.keeper.write_now();

    run.keeper.add_validation(at_step(1), of_loss(2.5), true);

    EXPECT_THAT(recorder_.events, ElementsAre("state save", "saved 1", "state train"));
    EXPECT_EQ(validation_of(1)->metric->value, 2.5);
    EXPECT_EQ(support::read_text(checkpoints() / "best"), "step-00000001\n");
  });
}

TEST_F(CheckpointKeeperTest, SavesTheBestOnceWhereItIsToBeKept) {
  config_.checkpoint.keep_best = 1;
  on([&](SmallRun& run) {
    run.train(1);
    run.keeper.add_validation(at_step(1), of_loss(2.5), true);
    run.keeper.finish(at_step(1));

    EXPECT_THAT(recorder_.saves, SizeIs(1));
    EXPECT_EQ(validation_of(1)->metric->value, 2.5);

    run.train(2);
    run.keeper.add_validation(at_step(2), of_loss(3.5), false);
    EXPECT_THAT(saved_names(), ElementsAre("step-00000001"));
  });
}

TEST_F(CheckpointKeeperTest, DoesNotSaveABestThatIsNotToBeKept) {
  config_.checkpoint.keep_best = 0;
  on([&](SmallRun& run) {
    run.train(1);
    run.keeper.add_validation(at_step(1), of_loss(2.5), true);
    run.train(2);
    EXPECT_THAT(saved_names(), IsEmpty());
  });
}

TEST_F(CheckpointKeeperTest, GoesOnWhereAValidationCannotBeWritten) {
  on([&](SmallRun& run) {
    run.train(1);
    run.keeper.save(at_step(1));
    run.train(2);
    (void)settle(run);
    move_aside();

    run.keeper.add_validation(at_step(1), of_loss(2.5), true);

    EXPECT_THAT(recorder_.events.back(), HasSubstr("save failed 1: checkpoint: "));
    move_back();
  });
}

TEST_F(CheckpointKeeperTest, SavesByTheClockOfTheFirstRank) {
  config_.checkpoint.every_minutes = 1e-9;
  dist::run_ranks(2, [&](dist::Communicator& group) {
    EventRecorder recorder;
    const SmallRun run(config_, data_, group, recorder);
    EXPECT_EQ(run.keeper.is_due_by_time(), group.rank() == 0);
  });
  config_.checkpoint.every_minutes = 60;
  on([](const SmallRun& run) { EXPECT_FALSE(run.keeper.is_due_by_time()); });
}

TEST_F(CheckpointKeeperTest, WritesAStepWhileTheNextOnesRun) {
  Gate gate;
  on(gate, [&](SmallRun& run) {
    run.train(1);
    const auto expected = arrays_of(run.training);
    run.keeper.save(at_step(1));
    run.train(2);
    run.train(3);
    EXPECT_EQ(run.keeper.poll(), CommitOutcome::kNone);
    EXPECT_THAT(gate.events, IsEmpty());
    gate.open();

    EXPECT_EQ(settle(run), CommitOutcome::kSaved);

    EXPECT_THAT(gate.events, ElementsAre("saved 1"));
    EXPECT_THAT(saved_names(), ElementsAre("step-00000001"));
    const checkpoint::Checkpoint checkpoint = saved(1);
    for (const auto& [name, values] : expected) {
      const checkpoint::ArrayInfo* info = checkpoint.find(name);
      ASSERT_NE(info, nullptr) << name;
      EXPECT_EQ(checkpoint.values(*info), std::vector<double>(values.begin(), values.end()))
          << name;
    }
  });
}

TEST_F(CheckpointKeeperTest, TellsOfASaveWithItsFiguresAndTheRunsIdentity) {
  on([&](SmallRun& run) {
    run.keeper.save(at_step(1), of_loss(2.5));
    run.train(2);
    (void)settle(run);
  });

  const checkpoint::Manifest manifest = saved(1).manifest();
  EXPECT_EQ(manifest.run_id, "small run");
  EXPECT_EQ(manifest.attempt, 3);
  EXPECT_EQ(manifest.provenance, R"({"made":"by a test"})");
  ASSERT_TRUE(validation_of(1).has_value());
  EXPECT_EQ(validation_of(1)->metric->value, 2.5);
  ASSERT_EQ(recorder_.saves.size(), 1u);
  EXPECT_EQ(recorder_.saves[0].path, (checkpoints() / "step-00000001").string());
  EXPECT_GT(recorder_.saves[0].bytes, manifest.state_bytes);
  EXPECT_GT(recorder_.saves[0].seconds, 0);
  EXPECT_GT(recorder_.saves[0].wait_seconds, 0);
  EXPECT_EQ(recorder_.syncs, 1);
}

TEST_F(CheckpointKeeperTest, ASaveWaitsForTheOneUnderWay) {
  on([&](SmallRun& run) {
    run.train(1);
    run.keeper.save(at_step(1));
    run.train(2);
    run.keeper.save(at_step(2));

    EXPECT_THAT(recorder_.events, ElementsAre("state save", "saved 1", "state train"));

    run.train(3);
    (void)settle(run);
    EXPECT_EQ(recorder_.events.back(), "saved 2");
  });
}

// Its snapshot is taken, but no step came that would have begun the commit.
TEST_F(CheckpointKeeperTest, ASaveWaitsForOneWhoseStepNeverCame) {
  on([&](SmallRun& run) {
    run.train(1);
    run.keeper.save(at_step(1));

    run.keeper.finish(at_step(1));

    EXPECT_THAT(recorder_.events, ElementsAre("state save", "saved 1", "state stopping"));
  });
}

TEST_F(CheckpointKeeperTest, KeepsAsManyAsTheConfigSays) {
  config_.checkpoint.keep_last = 2;
  on([&](SmallRun& run) {
    for (int64_t step = 1; step <= 4; ++step) {
      run.train(step);
      run.keeper.save(at_step(step));
    }
    run.keeper.finish(at_step(4));
  });

  EXPECT_THAT(saved_names(), ElementsAre("step-00000003", "step-00000004"));
}

TEST_F(CheckpointKeeperTest, TellsAllRanksTheSameOfASaveThatFailed) {
  config_.checkpoint.keep_last = 1;
  std::vector<std::vector<std::string>> events(2);
  dist::run_ranks(2, [&](dist::Communicator& group) {
    EventRecorder recorder;
    SmallRun run(config_, data_, group, recorder);
    run.train(1);
    if (group.rank() == 0) move_aside();
    run.keeper.save(at_step(1));
    run.train(2);
    EXPECT_EQ(settle(run), CommitOutcome::kFailed);
    if (group.rank() == 0) move_back();
    run.keeper.save(at_step(2));
    run.train(3);
    EXPECT_EQ(settle(run), CommitOutcome::kSaved);
    events[size_t(group.rank())] = recorder.events;
  });

  ASSERT_EQ(events[0].size(), 2u);
  EXPECT_THAT(events[0][0], HasSubstr("save failed 1: checkpoint: "));
  EXPECT_EQ(events[0][1], "saved 2");
  EXPECT_EQ(events[0][0], events[1][0]);
  EXPECT_EQ(events[0][1], events[1][1]);
  EXPECT_THAT(saved_names(), ElementsAre("step-00000002"));
}

TEST_F(CheckpointKeeperTest, SavesTheLastStepUnlessItIsSaved) {
  on([&](SmallRun& run) {
    run.train(1);
    run.keeper.save(at_step(1));
    run.train(2);

    run.keeper.finish(at_step(2));
    run.keeper.finish(at_step(2));

    EXPECT_THAT(recorder_.events, ElementsAre("state save", "saved 1", "state stopping",
                                              "state save", "saved 2", "state stopping"));
  });
}

TEST_F(CheckpointKeeperTest, DoesNotSaveAgainWhatTheRunGoesOnFrom) {
  on_one_rank([&](dist::Communicator& group) {
    SmallRun run(config_, data_, group, recorder_, 7);
    run.keeper.finish(at_step(7));
  });

  EXPECT_THAT(recorder_.events, IsEmpty());
}

TEST_F(CheckpointKeeperTest, EndsWithTheCauseWhereTheLastStepCannotBeSaved) {
  dist::run_ranks(2, [&](dist::Communicator& group) {
    EventRecorder recorder;
    SmallRun run(config_, data_, group, recorder);
    run.train(1);
    if (group.rank() == 0) move_aside();
    group.barrier();

    try {
      run.keeper.finish(at_step(1));
      ADD_FAILURE() << "nothing was thrown";
    } catch (const IoError& error) {
      EXPECT_THAT(error.what(),
                  HasSubstr("the last checkpoint, of step 1, could not be written: checkpoint: "));
      EXPECT_THAT(error.what(), HasSubstr("No such file or directory"));
    }
  });
}

TEST_F(CheckpointKeeperTest, TriesTheLastStepAgainAfterASaveOfItFailed) {
  on([&](SmallRun& run) {
    run.train(1);
    move_aside();
    run.keeper.save(at_step(1));
    run.train(2);
    EXPECT_EQ(settle(run), CommitOutcome::kFailed);
    move_back();

    EXPECT_NO_THROW(run.keeper.finish(at_step(2)));

    EXPECT_THAT(saved_names(), ElementsAre("step-00000002"));
  });
}

TEST_F(CheckpointKeeperTest, EndsTheRunWhereAWeightIsNotFinite) {
  on([&](SmallRun& run) {
    run.train(1);
    run.training.store().weights().data<float>()[3] = std::numeric_limits<float>::infinity();

    EXPECT_TRUE(
        support::throws_with<TrainingError>("model/", [&] { run.keeper.finish(at_step(1)); }));
    EXPECT_THAT(saved_names(), IsEmpty());
  });
}

TEST_F(CheckpointKeeperTest, SavesABranchAtOnce) {
  EventRecorder recorder;
  on(recorder, [&](SmallRun& run) {
    run.keeper.save(at_step(9));
    run.keeper.finish(at_step(9));
    run.directory->begin_branch(3);
    KeeperParts parts = run.keeper_parts();
    parts.is_branch = true;
    CheckpointKeeper branch(parts, 3);
    EXPECT_TRUE(branch.is_due(at_step(4)));
    branch.save(at_step(4));
    EXPECT_FALSE(branch.is_due(at_step(5))) << "one is under way";
    branch.finish(at_step(4));
    EXPECT_FALSE(branch.is_due(at_step(5)));

    EXPECT_EQ(run.directory->newest_valid().checkpoint->manifest().step, 4);
    ASSERT_THAT(recorder.saves.back().set_aside, SizeIs(1));
    EXPECT_THAT(recorder.saves.back().set_aside[0], HasSubstr("abandoned-"));
  });
}

TEST_F(CheckpointKeeperTest, SavesABranchThatHasNoStepLeftToDo) {
  EventRecorder recorder;
  on(recorder, [&](SmallRun& run) {
    for (const int64_t step : {3, 9}) {
      run.keeper.save(at_step(step));
      run.keeper.finish(at_step(step));
    }
    run.directory->begin_branch(3);
    KeeperParts parts = run.keeper_parts();
    parts.is_branch = true;
    CheckpointKeeper branch(parts, 3);

    branch.finish(at_step(3));

    EXPECT_EQ(run.directory->newest_valid().checkpoint->manifest().step, 3);
  });
}

}  // namespace
}  // namespace fathom::launcher
