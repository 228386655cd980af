#include "launcher/train/step_loop.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <utility>

#include <gmock/gmock.h>

#include "core/optim/schedule.h"
#include "launcher/signals.h"
#include "launcher/train/load_state.h"
#include "launcher/train/recall_validation.h"
#include "monitoring/log.h"
#include "tests/launcher/train/small_run.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::SizeIs;
using ::testing::StartsWith;

class StepLoopTest : public ::testing::Test {
 protected:
  StepLoopTest() {
    config_.run.directory = directory_.path();
    config_.verdict.after = 1'000'000;
  }

  // A whole run on one rank; then f(run, loop, result).
  template <class F>
  void run_to_its_end(const F& f) {
    on_one_rank([&](dist::Communicator& group) {
      SmallRun run(config_, data_, group, recorder_);
      StepLoop loop = run.loop();
      const TrainResult result = loop.run();
      f(run, loop, result);
    });
  }
  // Every activation is infinite, every weight finite.
  static void overflow(SmallRun& run) {
    std::fill_n(run.training.store().weights().data<float>(), run.training.store().size(), 1e38f);
  }

  support::TemporaryDirectory directory_;
  Config config_ = small_config();
  data::PreparedData data_ = small_data();
  EventRecorder recorder_;
  monitoring::Log log_{{.level = monitoring::LogLevel::kError}};
};

TEST_F(StepLoopTest, TellsItsEventsInOrder) {
  config_.train.max_steps = 3;
  config_.train.validate_every = 2;
  config_.monitoring.layer_statistics_every = 2;

  run_to_its_end([](SmallRun&, StepLoop&, const TrainResult&) {});

  EXPECT_THAT(recorder_.events,
              ElementsAre("state train",                                   //
                          "layers 1 of 5 blocks", "step 1",                //
                          "layers 2 of 5 blocks", "step 2",                //
                          "state validate", "validated 2", "state train",  //
                          "step 3",                                        //
                          "state stopping", "state save", "saved 3", "state stopping",
                          "state validate", "validated 3", "state stopping"));
}

TEST_F(StepLoopTest, EndsAtTheLastStepWithItSaved) {
  run_to_its_end([&](SmallRun& run, StepLoop& loop, const TrainResult& result) {
    EXPECT_EQ(result.kind, StopKind::kCompleted);
    EXPECT_EQ(result.reason, "reached train.max_steps 4");
    ASSERT_TRUE(result.validation.has_value());
    EXPECT_EQ(result.validation->step, 4);
    EXPECT_EQ(loop.state().step, 4);
    EXPECT_EQ(run.directory->newest_valid().checkpoint->manifest().step, 4);
  });
}

TEST_F(StepLoopTest, EndsAfterTheLastEpoch) {
  config_.train.max_steps = 0;
  config_.train.max_epochs = 1;
  const data::PairLengths lengths = data_.train.lengths();
  const int64_t batches =
      data::EpochPlan(lengths, config_.batch, config_.run.seed, 0).batch_count();

  run_to_its_end([&](SmallRun&, StepLoop& loop, const TrainResult& result) {
    EXPECT_EQ(result.reason, "reached train.max_epochs 1");
    EXPECT_EQ(loop.state().step, batches);
    EXPECT_EQ(loop.state().sentences, data_.train.size());
    EXPECT_EQ(loop.state().target_tokens, data_.train.target_tokens() + data_.train.size());
    EXPECT_EQ(loop.state().source_tokens, data_.train.source_tokens() + data_.train.size());
  });
}

TEST_F(StepLoopTest, ReportsWhatEveryStepDid) {
  run_to_its_end([&](SmallRun& run, StepLoop&, const TrainResult&) {
    ASSERT_THAT(recorder_.steps, SizeIs(4));
    for (const StepRecord& record : recorder_.steps) {
      const data::Batch batch = run.training.batch(record.step);
      EXPECT_EQ(record.source_tokens, batch.source_tokens);
      EXPECT_EQ(record.target_tokens, batch.target_tokens);
      EXPECT_EQ(record.sentences, int64_t(batch.pairs.size()));
      EXPECT_EQ(record.epoch, 0);
      EXPECT_EQ(record.learning_rate, optim::learning_rate(config_.optimizer, record.step, 4));
      EXPECT_GT(record.loss, record.nll / 2);
      EXPECT_GT(record.gradient_norm, 0);
      EXPECT_FALSE(record.is_skipped);
      EXPECT_GT(record.step_seconds, record.optimizer_seconds);
      EXPECT_GT(record.optimizer_seconds, 0);
      EXPECT_GT(record.timing.backward_seconds, 0);
      EXPECT_GT(record.flops_utilization, 0);
      EXPECT_GT(record.memory_bytes, 0);
      EXPECT_THAT(record.ranks, SizeIs(1));
    }
  });
}

TEST_F(StepLoopTest, TrainsTheSameWeightsOnTwoRanks) {
  config_.dist.shard_optimizer = true;
  config_.train.validate_every = 2;
  const auto weights = [&](dist::Communicator& group) {
    EventRecorder recorder;
    SmallRun run(config_, data_, group, recorder);
    (void)run.loop().run();
    return floats(run.training.store().weights());
  };
  const std::vector<float> alone = on_ranks(1, weights);
  std::filesystem::remove_all(directory_ / "checkpoints");

  EXPECT_EQ(on_ranks(2, weights), alone);
}

TEST_F(StepLoopTest, GoesOnAsARunThatNeverStopped) {
  config_.train.validate_every = 1;
  std::vector<float> expected;
  run_to_its_end([&](SmallRun& run, StepLoop&, const TrainResult&) {
    expected = floats(run.training.store().weights());
  });
  std::filesystem::remove_all(directory_ / "checkpoints");
  const std::vector<StepRecord> steps = std::exchange(recorder_.steps, {});

  config_.train.max_steps = 2;
  run_to_its_end([](SmallRun&, StepLoop&, const TrainResult&) {});
  config_.train.max_steps = 4;
  on_one_rank([&](dist::Communicator& group) {
    SmallRun run(config_, data_, group, recorder_, 2);
    TrainState state;
    const checkpoint::SearchResult found = run.directory->newest_valid();
    load_state(&*found.checkpoint, run.training.model, run.training.adam, run.training.sharding,
               state, group);
    StepLoop loop = run.loop(state);
    (void)loop.run();

    EXPECT_EQ(loop.state().validations, 4);
    EXPECT_EQ(floats(run.training.store().weights()), expected);
  });
  ASSERT_EQ(recorder_.steps.size(), steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(recorder_.steps[i].loss, steps[i].loss);
    EXPECT_EQ(recorder_.steps[i].learning_rate, steps[i].learning_rate);
  }
}

TEST_F(StepLoopTest, SavesEveryFewSteps) {
  config_.checkpoint.every_steps = 2;
  config_.checkpoint.keep_last = 10;
  config_.train.max_steps = 5;

  run_to_its_end([](SmallRun& run, StepLoop&, const TrainResult&) {
    std::vector<int64_t> steps;
    for (const checkpoint::CheckpointEntry& entry : run.directory->list())
      steps.push_back(entry.step);
    EXPECT_THAT(steps, ElementsAre(5, 4, 2));
  });
}

// On the guard device, with the compute queue ahead of the copies: a checkpoint is not of what the
// next update has made of the weights.
TEST_F(StepLoopTest, HoldsAnUpdateBackUntilTheStepBeforeIsCopied) {
  ::setenv("FATHOM_GUARD_SCHEDULE", "early:0", 1);
  data_.valid.reset();
  config_.batch = {.tokens = 16, .micro_tokens = 16, .shards = 1};  // it is slow
  config_.checkpoint.every_steps = 1;
  const auto first_step_of = [&](int64_t steps) {
    std::filesystem::remove_all(directory_ / "checkpoints");
    config_.train.max_steps = steps;
    on_one_rank([&](dist::Communicator& group) {
      SmallRun run(config_, data_, group, recorder_, -1,
                   tensor::open_device_library(GUARD_DEVICE, {.threads = 1}));
      (void)run.loop().run();
    });
    const auto checkpoint =
        checkpoint::Checkpoint::open(directory_ / "checkpoints" / checkpoint::step_name(1));
    std::map<std::string, std::string> hashes;
    for (const checkpoint::ArrayInfo& info : checkpoint.manifest().arrays)
      hashes[info.name] = info.hash;
    return hashes;
  };

  EXPECT_EQ(first_step_of(2), first_step_of(1));
}

TEST_F(StepLoopTest, SavesTheBestStepWithItsValue) {
  config_.checkpoint.keep_best = 1;
  config_.train.validate_every = 2;
  config_.train.max_steps = 3;

  run_to_its_end([&](SmallRun& run, StepLoop& loop, const TrainResult&) {
    EXPECT_EQ(loop.state().best_step, 2);
    const auto best = checkpoint::Checkpoint::open(run.directory->path() / "step-00000002");
    const auto found = checkpoint::read_validation(best.path(), best.manifest());
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->metric->value, loop.state().best_value);
  });
}

// With every validation scheduled, a checkpoint does not depend on which save or signal made it.
TEST_F(StepLoopTest, SavesTheStateBeforeTheValidationOfItsStep) {
  config_.train.max_steps = 4;
  config_.train.validate_every = 2;
  for (const int64_t every : {0, 2}) {  // by the best, by the interval
    config_.checkpoint.every_steps = every;
    std::filesystem::remove_all(directory_ / "checkpoints");
    run_to_its_end([&](SmallRun& run, StepLoop& loop, const TrainResult&) {
      EXPECT_EQ(loop.state().validations, 2);
      EXPECT_EQ(loop.state().validation_due, 0);
      for (const checkpoint::CheckpointEntry& entry : run.directory->list()) {
        const checkpoint::Manifest manifest = checkpoint::read_manifest(entry.path);
        EXPECT_EQ(std::get<int64_t>(manifest.state.at("validation_due")), entry.step);
        EXPECT_EQ(std::get<int64_t>(manifest.state.at("validations")), entry.step / 2 - 1);
        EXPECT_TRUE(checkpoint::read_validation(entry.path, manifest).has_value());
      }
      EXPECT_THAT(recorder_.saves, SizeIs(run.directory->list().size()));
    });
    recorder_.saves.clear();
  }
}

// Kills are between two lines of the loop; here the run is copied there.
TEST_F(StepLoopTest, MakesUpForAValidationThatWasDue) {
  config_.train.validate_every = 2;
  config_.checkpoint.every_steps = 2;
  std::vector<std::string> expected;
  run_to_its_end([&](SmallRun&, StepLoop& loop, const TrainResult& result) {
    expected = {join(loop.state().best_value), join(loop.state().best_step),
                join(result.validation->result.nll)};
  });
  const std::filesystem::path second = directory_ / "checkpoints" / checkpoint::step_name(2);
  for (const bool is_known : {true, false}) {
    std::filesystem::remove_all(directory_ / "checkpoints" / checkpoint::step_name(4));
    if (!is_known) std::filesystem::remove(second / checkpoint::kValidationName);
    on_one_rank([&](dist::Communicator& group) {
      EventRecorder again;
      SmallRun run(config_, data_, group, again, 2);
      TrainState state;
      const checkpoint::SearchResult found = run.directory->newest_valid();
      load_state(&*found.checkpoint, run.training.model, run.training.adam, run.training.sharding,
                 state, group);
      EXPECT_EQ(state.validation_due, 2);
      const auto known = recall_validation(&*found.checkpoint, config_, data_, state, group, log_);
      ASSERT_EQ(known.has_value(), is_known);
      if (known) run.validator.recall(*known);
      StepLoop loop = run.loop(state);
      const TrainResult result = loop.run();

      EXPECT_THAT((std::vector{join(loop.state().best_value), join(loop.state().best_step),
                               join(result.validation->result.nll)}),
                  expected);
      EXPECT_EQ(loop.state().validations, 2);
      const auto first = std::ranges::find(again.events, "validated 2");
      EXPECT_EQ(first == again.events.end(), is_known);
      if (!is_known) {
        EXPECT_LT(first, std::ranges::find(again.events, "step 3")) << "before the next step";
      }
    });
    EXPECT_TRUE(std::filesystem::exists(second / checkpoint::kValidationName));
  }
}

TEST_F(StepLoopTest, DoesNotRecallAValidationOfAnotherTextOrMetric) {
  config_.train.validate_every = 2;
  config_.train.max_steps = 2;
  run_to_its_end([](SmallRun&, StepLoop&, const TrainResult&) {});
  const auto checkpoint =
      checkpoint::Checkpoint::open(directory_ / "checkpoints" / checkpoint::step_name(2));
  const auto recalls = [&](const TrainState& state) {
    bool out = false;
    on_one_rank([&](dist::Communicator& group) {
      out = recall_validation(&checkpoint, config_, data_, state, group, log_).has_value();
    });
    return out;
  };
  TrainState due;
  EXPECT_FALSE(recalls(due));
  due.step = due.validation_due = 2;
  EXPECT_TRUE(recalls(due));
  config_.train.best_metric = BestMetric::kBleu;
  EXPECT_FALSE(recalls(due));
  config_.train.best_metric = BestMetric::kLoss;
  data_.valid = data_.train;
  EXPECT_FALSE(recalls(due));
  data_ = small_data();
  EXPECT_TRUE(recalls(due));
  support::write_text(checkpoint.path() / checkpoint::kValidationName, "{");
  EXPECT_FALSE(recalls(due));
}

TEST_F(StepLoopTest, EndsWherePatienceIsAtItsEnd) {
  config_.train.validate_every = 1;
  config_.train.patience = 2;
  config_.optimizer.learning_rate = config_.optimizer.warmup_start = 0;  // nothing gets better

  run_to_its_end([](SmallRun&, StepLoop& loop, const TrainResult& result) {
    EXPECT_EQ(result.kind, StopKind::kCompleted);
    EXPECT_EQ(result.reason,
              "no better validation for 2 in a row (train.patience); best at step 1");
    EXPECT_EQ(loop.state().step, 3);
  });
}

// It steers nothing: a run that goes on later is as one that never stopped.
TEST_F(StepLoopTest, DoesNotCountAValidationThatWasNotScheduled) {
  run_to_its_end([&](SmallRun&, StepLoop& loop, const TrainResult& result) {
    EXPECT_THAT(recorder_.events, Contains("validated 4"));
    EXPECT_EQ(result.validation->step, 4);
    EXPECT_EQ(loop.state().validations, 0);
    EXPECT_EQ(loop.state().verdict.validations, 0);
  });
}

TEST_F(StepLoopTest, FailsWhereTheVerdictSaysSo) {
  config_.train.validate_every = 2;
  config_.verdict.after = 1;
  data_.unigram_entropy = 0.01;  // whatever the loss, it is above

  run_to_its_end([&](SmallRun& run, StepLoop& loop, const TrainResult& result) {
    EXPECT_EQ(result.kind, StopKind::kFailed);
    EXPECT_THAT(result.reason, StartsWith("plateau: "));
    EXPECT_EQ(loop.state().step, 2);
    EXPECT_EQ(loop.state().verdict.step, 2);
    EXPECT_EQ(run.directory->newest_valid().checkpoint->manifest().step, 2);
  });
}

TEST_F(StepLoopTest, FailsWhereTheLastValidationShowsIt) {
  config_.verdict.after = 1;
  data_.unigram_entropy = 0.01;

  run_to_its_end([](SmallRun&, StepLoop& loop, const TrainResult& result) {
    EXPECT_EQ(result.kind, StopKind::kFailed);
    EXPECT_EQ(loop.state().step, 4);
    EXPECT_EQ(loop.state().verdict.status, 0) << "the state does not hear of it";
  });
}

TEST_F(StepLoopTest, GoesOnInSpiteOfAVerdictThatIsOnlyReported) {
  config_.train.validate_every = 2;
  config_.verdict = {.after = 1, .action = VerdictAction::kReport};
  data_.unigram_entropy = 0.01;

  run_to_its_end([](SmallRun&, StepLoop& loop, const TrainResult& result) {
    EXPECT_EQ(result.kind, StopKind::kCompleted);
    EXPECT_EQ(result.reason, "reached train.max_steps 4");
    EXPECT_THAT(result.verdict, StartsWith("plateau: The best validation loss up to step 2 is "));
    EXPECT_EQ(loop.state().step, 4);
  });
  const auto is_verdict = [](const std::string& e) { return e.starts_with("judged "); };
  EXPECT_EQ(std::ranges::count_if(recorder_.events, is_verdict), 1);
  EXPECT_THAT(recorder_.events, Contains(StartsWith("judged 2: plateau: ")));
}

TEST_F(StepLoopTest, JudgesNothingWhereTheVerdictIsOff) {
  config_.train.validate_every = 2;
  config_.verdict = {.after = 1, .action = VerdictAction::kOff};
  data_.unigram_entropy = 0.01;

  run_to_its_end([](SmallRun&, StepLoop& loop, const TrainResult& result) {
    EXPECT_EQ(result.kind, StopKind::kCompleted);
    EXPECT_EQ(result.verdict, "");
    EXPECT_EQ(loop.state().verdict.status, 0);
  });
}

// The end of an earlier attempt was cut off after its last save.
TEST_F(StepLoopTest, MakesUpForAnEndThatWasCutOff) {
  for (const int64_t every : {0, 2}) {
    config_.train.validate_every = every;
    recorder_.events.clear();
    on_one_rank([&](dist::Communicator& group) {
      TrainState ended;
      double loss = 0;
      {
        SmallRun run(config_, data_, group, recorder_);
        StepLoop loop = run.loop();
        loss = loop.run().validation->result.nll;
        ended = loop.state();
      }
      EventRecorder again;
      SmallRun run(config_, data_, group, again, ended.step);
      const TrainResult result = run.loop(ended).run();

      EXPECT_EQ(result.kind, StopKind::kCompleted);
      EXPECT_EQ(result.reason, "reached train.max_steps 4");
      ASSERT_TRUE(result.validation.has_value());
      EXPECT_EQ(result.validation->step, 4);
      EXPECT_GT(loss, 0);
      EXPECT_THAT(again.events, Contains("validated 4"));
      EXPECT_THAT(again.steps, SizeIs(0));
    });
  }
}

TEST_F(StepLoopTest, ReportsAndCountsAStepThatWasSkipped) {
  config_.monitoring.layer_statistics_every = 1;
  config_.train.max_steps = 3;
  data_.valid.reset();
  on_one_rank([&](dist::Communicator& group) {
    SmallRun run(config_, data_, group, recorder_);
    overflow(run);
    const std::vector<float> before = floats(run.training.store().weights());
    StepLoop loop = run.loop();

    EXPECT_EQ(loop.run().kind, StopKind::kCompleted);

    EXPECT_EQ(loop.state().step, 3);
    EXPECT_EQ(loop.state().skipped, 3);
    EXPECT_EQ(loop.state().verdict.nonfinite_steps, 3);
    EXPECT_EQ(run.training.adam.updates(), 0);
    EXPECT_EQ(floats(run.training.store().weights()), before);
  });
  ASSERT_THAT(recorder_.steps, SizeIs(3));
  for (const StepRecord& record : recorder_.steps) {
    EXPECT_TRUE(record.is_skipped);
    EXPECT_EQ(record.learning_rate, optim::learning_rate(config_.optimizer, 1, 3));
  }
  EXPECT_THAT(recorder_.events,
              ElementsAre("state train",                       //
                          "skipped 1 for 5 blocks", "step 1",  //
                          "skipped 2 for 5 blocks", "step 2",  //
                          "skipped 3 for 5 blocks", "step 3",  //
                          "state stopping", "state save", "saved 3", "state stopping"));
}

TEST_F(StepLoopTest, FailsAfterTenSkippedStepsInARow) {
  config_.train.max_steps = 20;
  data_.valid.reset();
  on_one_rank([&](dist::Communicator& group) {
    SmallRun run(config_, data_, group, recorder_);
    overflow(run);
    StepLoop loop = run.loop();

    const TrainResult result = loop.run();

    EXPECT_EQ(result.kind, StopKind::kFailed);
    EXPECT_THAT(result.reason,
                StartsWith("nan: The training loss was not finite at step 10 (10 in a row). "));
    EXPECT_EQ(loop.state().step, 10);
  });
}

// Sends a signal at the end of a step, or when a validation begins.
class Interrupter final : public EventRecorder {
 public:
  Interrupter(int signal, bool in_validation) : signal_(signal), in_validation_(in_validation) {}
  void step_done(const StepRecord& record) override {
    if (!in_validation_ && record.step == 2) std::raise(signal_);
  }
  void state_changed(monitoring::RunState state) override {
    if (in_validation_ && state == monitoring::RunState::kValidate) std::raise(signal_);
  }
  void validated(const ValidationRecord& record) override {
    std::cerr << join("validated ", record.step, "; ");
  }

 private:
  int signal_;
  bool in_validation_;
};

using StepLoopDeathTest = StepLoopTest;

// In a process of its own: once asked, a process goes on stopping.
void train_and_tell(const Config& config, const data::PreparedData& data, int signal,
                    bool in_validation) {
  install_signal_handlers(Stopping::kBetweenSteps);
  on_one_rank([&](dist::Communicator& group) {
    Interrupter interrupter(signal, in_validation);
    SmallRun run(config, data, group, interrupter);
    StepLoop loop = run.loop();
    const TrainResult result = loop.run();
    std::string saved;
    for (const checkpoint::CheckpointEntry& entry : run.directory->list())
      saved += join(" ", entry.step);
    std::cerr << join(status_of(result.kind), ": ", result.reason, "; step ", loop.state().step,
                      ", due ", loop.state().validation_due, ", saved", saved, "\n")
              << std::flush;
    std::_Exit(exit_code_of(result.kind));
  });
}

TEST_F(StepLoopDeathTest, StopsWithItsStepSavedWhenASignalAsksForIt) {
  for (const int signal : {SIGUSR1, SIGTERM, SIGINT, SIGHUP, SIGXCPU})
    EXPECT_EXIT(train_and_tell(config_, data_, signal, false), ::testing::ExitedWithCode(75),
                "^interrupted: a signal asked for it; step 2, due 0, saved 2\n");
}

TEST_F(StepLoopDeathTest, StopsInTheMiddleOfAValidation) {
  config_.train.validate_every = 2;
  EXPECT_EXIT(train_and_tell(config_, data_, SIGTERM, true), ::testing::ExitedWithCode(75),
              "^interrupted: a signal asked for it; step 2, due 2, saved 2\n");
  std::filesystem::remove_all(directory_ / "checkpoints");
  config_.train.validate_every = 0;  // the closing one
  EXPECT_EXIT(train_and_tell(config_, data_, SIGTERM, true), ::testing::ExitedWithCode(75),
              "^interrupted: a signal asked for it; step 4, due 0, saved 4\n");
}

TEST_F(StepLoopDeathTest, SavesAndGoesOnWhenASignalAsksForThat) {
  data_.valid.reset();
  EXPECT_EXIT(train_and_tell(config_, data_, SIGUSR2, false), ::testing::ExitedWithCode(0),
              "^completed: reached train.max_steps 4; step 4, due 0, saved 4 2\n");
}

}  // namespace
}  // namespace fathom::launcher
