#include "launcher/train/step_profiler.h"

#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/launcher/train/training_support.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class StepProfilerTest : public ::testing::Test {
 protected:
  // One rank's steps [first, last], and the numbers of those profiled.
  std::vector<int64_t> train(StepProfiler& profiler, SmallTraining& training, int64_t first,
                             int64_t last) {
    std::vector<int64_t> profiled;
    for (int64_t step = first; step <= last; ++step) {
      autograd::Profile* profile = profiler.begin_step(step);
      const data::Batch batch = training.batch(1);
      const StepGradient gradient = training.gradients.run(batch, step, false, profile);
      (void)training.updater.apply(gradient, batch.target_tokens, 0.01, profile);
      if (profile == nullptr) continue;
      profiled.push_back(step);
      profiler.end_step();
    }
    return profiled;
  }
  template <class F>
  void on_training(const F& f) {
    on_one_rank([&](dist::Communicator& group) {
      SmallTraining training(config_, data_.train, group);
      StepProfiler profiler(training.device->compute(), trace_);
      f(profiler, training);
    });
  }

  Config config_ = small_config();
  data::PreparedData data_ = small_data();
  support::TemporaryDirectory directory_;
  std::filesystem::path trace_ = directory_ / "trace.json";
  std::ostringstream table_;
};

TEST_F(StepProfilerTest, ProfilesTheTenStepsAfterTheFirst) {
  on_training([&](StepProfiler& profiler, SmallTraining& training) {
    EXPECT_THAT(train(profiler, training, 41, 53),
                ElementsAre(42, 43, 44, 45, 46, 47, 48, 49, 50, 51));
    profiler.finish(table_);
  });

  EXPECT_THAT(
      table_.str(),
      HasSubstr("profile: steps 42 to 51; for https://ui.perfetto.dev: " + trace_.string() + "\n"));
}

TEST_F(StepProfilerTest, PrintsARowForEveryOpAndPhase) {
  on_training([&](StepProfiler& profiler, SmallTraining& training) {
    (void)train(profiler, training, 1, 3);
    profiler.finish(table_);
  });

  const std::string text = table_.str();
  EXPECT_THAT(text, StartsWith("op "));
  for (const char* row : {"linear                 forward", "linear                 backward",
                          "gradient norm          update", "adam                   update",
                          "reduce gradients       update", "total"})
    EXPECT_THAT(text, HasSubstr(join("\n", row)));
  EXPECT_THAT(text, HasSubstr("adam                   update           1.0"));  // calls a step
}

TEST_F(StepProfilerTest, WritesATraceInWhichStepFollowsStep) {
  on_training([&](StepProfiler& profiler, SmallTraining& training) {
    (void)train(profiler, training, 1, 3);
    profiler.finish(table_);
  });

  const nlohmann::json trace = nlohmann::json::parse(support::read_text(trace_));
  std::set<int64_t> steps;
  double end_of_step_2 = 0;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    const double begin = event.at("ts").get<double>();
    const int64_t step = event.at("args").at("step").get<int64_t>();
    EXPECT_EQ(event.at("ph"), "X");
    EXPECT_GE(event.at("dur").get<double>(), 0);
    if (step == 2) end_of_step_2 = std::max(end_of_step_2, begin + event.at("dur").get<double>());
    if (step == 3) {
      EXPECT_GE(begin, end_of_step_2 - 1e-3);
    }
    steps.insert(step);
  }
  EXPECT_THAT(steps, ElementsAre(2, 3));
}

TEST_F(StepProfilerTest, SaysSoWhereTheRunEndedBeforeItsSecondStep) {
  on_training([&](StepProfiler& profiler, SmallTraining& training) {
    (void)train(profiler, training, 1, 1);
    profiler.finish(table_);
  });

  EXPECT_EQ(table_.str(), "profile: the run ended before its second step; nothing was profiled\n");
  EXPECT_FALSE(std::filesystem::exists(trace_));
}

TEST_F(StepProfilerTest, FailsWhereTheTraceCannotBeWritten) {
  trace_ = directory_ / "missing" / "trace.json";
  on_training([&](StepProfiler& profiler, SmallTraining& training) {
    (void)train(profiler, training, 1, 2);

    EXPECT_TRUE(support::throws_with<IoError>(trace_.string() + ": cannot be written",
                                              [&] { profiler.finish(table_); }));
  });
}

}  // namespace
}  // namespace fathom::launcher
