#include "launcher/train/run_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/launcher/train/sample_records.h"

namespace fathom::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Writes down each event under its own name.
class Listener final : public RunObserver {
 public:
  Listener(std::string name, std::vector<std::string>& heard)
      : name_(std::move(name)), heard_(heard) {}

  void started(const RunStart& start) override { hear("started", start.step); }
  void state_changed(monitoring::RunState state) override { hear("state", int(state)); }
  void step_done(const StepRecord& record) override { hear("step", record.step); }
  void layers_measured(int64_t step, std::span<const observe::LayerRecord> layers) override {
    hear("layers", step + int64_t(layers.size()));
  }
  void step_skipped(const StepRecord& record,
                    std::span<const observe::NonfiniteBlock> blocks) override {
    hear("skipped", record.step + int64_t(blocks.size()));
  }
  void validated(const ValidationRecord& record) override { hear("validated", record.step); }
  void judged(int64_t step, const std::string& verdict) override { hear(verdict, step); }
  void saved(const SaveRecord& record) override { hear("saved", record.step); }
  void save_failed(int64_t step, const std::string& reason) override { hear(reason, step); }
  void sync() override { hear("sync", 0); }
  void finished(const RunEnd& end) override { hear("finished", end.step); }

 private:
  void hear(const std::string& event, int64_t number) {
    heard_.push_back(join(name_, " ", event, " ", number));
  }

  std::string name_;
  std::vector<std::string>& heard_;
};

void send_all_events(RunObserver& observer) {
  observer.started(sample_start());
  observer.state_changed(monitoring::RunState::kTrain);
  observer.layers_measured(7, sample_layers());
  observer.step_skipped(skipped_step(), kNonfinite);
  observer.step_done(sample_step());
  observer.validated(sample_validation());
  observer.judged(7, "plateau");
  observer.saved(sample_save());
  observer.save_failed(7, "full");
  observer.sync();
  observer.finished(sample_end());
}

TEST(RunObservers, ForwardEveryEventToEachInOrder) {
  std::vector<std::string> heard;
  Listener a("a", heard), b("b", heard);
  RunObservers observers;
  observers.add(a);
  observers.add(b);

  send_all_events(observers);

  EXPECT_THAT(heard,
              ElementsAre("a started 0", "b started 0", "a state 1", "b state 1", "a layers 8",
                          "b layers 8", "a skipped 8", "b skipped 8", "a step 7", "b step 7",
                          "a validated 7", "b validated 7", "a plateau 7", "b plateau 7",
                          "a saved 7", "b saved 7", "a full 7", "b full 7", "a sync 0", "b sync 0",
                          "a finished 7", "b finished 7"));
}

TEST(RunObservers, DoNothingWhenThereAreNone) {
  RunObservers observers;

  EXPECT_NO_THROW(send_all_events(observers));
}

TEST(RunObservers, PassOnWhatAnObserverThrows) {
  class Full final : public RunObserver {
    void step_done(const StepRecord& /*record*/) override { fail<IoError>("no space"); }
  };
  std::vector<std::string> heard;
  Full full;
  Listener behind("b", heard);
  RunObservers observers;
  observers.add(full);
  observers.add(behind);

  EXPECT_THROW(observers.step_done(sample_step()), IoError);
  EXPECT_THAT(heard, IsEmpty());
}

}  // namespace
}  // namespace fathom::launcher
