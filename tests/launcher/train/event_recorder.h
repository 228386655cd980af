// Writes down the events of a run, a line each, in the order in which they came.
#pragma once

#include <array>
#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "launcher/train/run_observer.h"

namespace fathom::launcher {

class EventRecorder : public RunObserver {
 public:
  void state_changed(monitoring::RunState state) override {
    constexpr std::array kNames = {"init", "train", "validate", "save", "stopping", "finished"};
    add("state ", kNames.at(size_t(state)));
  }
  void step_done(const StepRecord& record) override {
    steps.push_back(record);
    add("step ", record.step);
  }
  void layers_measured(int64_t step, std::span<const observe::LayerRecord> layers) override {
    add("layers ", step, " of ", layers.size(), " blocks");
  }
  void step_skipped(const StepRecord& record,
                    std::span<const observe::NonfiniteBlock> blocks) override {
    add("skipped ", record.step, " for ", blocks.size(), " blocks");
  }
  void validated(const ValidationRecord& record) override { add("validated ", record.step); }
  void judged(int64_t step, const std::string& verdict) override {
    add("judged ", step, ": ", verdict);
  }
  void saved(const SaveRecord& record) override {
    saves.push_back(record);
    add("saved ", record.step);
  }
  void save_failed(int64_t step, const std::string& reason) override {
    add("save failed ", step, ": ", reason);
  }
  void sync() override { ++syncs; }

  std::vector<std::string> events;
  std::vector<StepRecord> steps;
  std::vector<SaveRecord> saves;
  std::atomic<int> syncs = 0;

 private:
  template <class... Parts>
  void add(const Parts&... parts) {
    events.push_back(join(parts...));
  }
};

}  // namespace fathom::launcher
