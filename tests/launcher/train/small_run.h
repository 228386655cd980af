// A training run in small, with checkpoints: what the step loop works with, on one rank.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launcher/train/checkpoint_keeper.h"
#include "launcher/train/step_loop.h"
#include "launcher/train/validator.h"
#include "tests/launcher/train/event_recorder.h"
#include "tests/launcher/train/training_support.h"

namespace fathom::launcher {

// The config, the data, the group and the recorder outlive it. config.run.directory is there.
struct SmallRun {
  const data::PreparedData& data;
  dist::Communicator& group;
  EventRecorder& recorder;
  SmallTraining training;
  std::vector<std::string> references;
  dist::Watchdog watchdog{std::chrono::hours(1), [](const dist::Watchdog::Expiry&) {}};
  std::optional<checkpoint::RunLock> lock;
  std::optional<checkpoint::CheckpointDirectory> directory;
  Validator validator;
  StateSnapshot snapshot;
  CheckpointKeeper keeper;

  SmallRun(const Config& config, const data::PreparedData& prepared, dist::Communicator& ranks,
           EventRecorder& events, int64_t saved_step = -1,
           std::unique_ptr<Device> device = tensor::make_reference_device())
      : data(prepared),
        group(ranks),
        recorder(events),
        training(config, prepared.train, ranks, std::move(device)),
        directory(open_directory()),
        validator(config, prepared, references, training.model, *training.device, ranks),
        snapshot(training.store(), training.adam, training.sharding, ranks.rank() == 0),
        keeper(keeper_parts(), saved_step) {}

  KeeperParts keeper_parts() {
    return {.config = training.config,
            .directory = directory ? &*directory : nullptr,
            .snapshot = snapshot,
            .group = group,
            .watchdog = watchdog,
            .observer = recorder,
            .provenance = [] { return std::string(R"({"made": "by a test"})"); },
            .run_id = "small run",
            .attempt = 3};
  }

  // A step as the loop makes it.
  void train(int64_t step) {
    const StepGradient gradient = training.gradient(step);
    keeper.before_update();
    (void)training.update(gradient, step);
    keeper.after_update();
  }

  StepLoop loop(const TrainState& state = {}) {
    return StepLoop({.config = training.config,
                     .data = data,
                     .group = group,
                     .watchdog = watchdog,
                     .model = training.model,
                     .adam = training.adam,
                     .gradients = training.gradients,
                     .updater = training.updater,
                     .layers = training.layers,
                     .validator = validator,
                     .keeper = keeper,
                     .observer = recorder},
                    state);
  }

 private:
  std::optional<checkpoint::CheckpointDirectory> open_directory() {
    if (group.rank() != 0) return std::nullopt;
    const std::string& path = training.config.run.directory;
    lock.emplace(checkpoint::RunLock::acquire(path));
    return checkpoint::CheckpointDirectory::open_for_writing(path, *lock);
  }
};

// By name, as an archive that saves sees them.
inline std::map<std::string, std::vector<float>> arrays_of(const checkpoint::SavingArchive& from) {
  std::map<std::string, std::vector<float>> out;
  for (const checkpoint::ArrayView& array : from.arrays()) {
    const auto* values = reinterpret_cast<const float*>(array.bytes.data());
    out[array.name].assign(values, values + array.bytes.size() / sizeof(float));
  }
  return out;
}

// What a checkpoint of an optimizer that is not sharded must have of it.
inline std::map<std::string, std::vector<float>> arrays_of(SmallTraining& training) {
  std::map<std::string, std::vector<float>> out;
  std::vector<float> flat(size_t(training.store().size()), 0.0f);
  const auto add = [&](const std::string& prefix, const Tensor& from) {
    training.device->compute().download(std::span(flat), from);
    for (const auto& p : training.store().all())
      out[prefix + p->name].assign(flat.begin() + p->offset, flat.begin() + p->offset + p->numel());
  };
  add("model/", training.store().weights());
  add("optimizer/m/", training.adam.first());
  add("optimizer/v/", training.adam.second());
  return out;
}

}  // namespace fathom::launcher
