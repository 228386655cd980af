// Weights and moments of one step, copied to rank 0's host memory on the copy context while the
// next step's forward and backward run:
//
//   snapshot.begin();                  // after the step's update
//   ... the next step's forward and backward are queued ...
//   snapshot.hold_updates();           // and only then its update
//   ... once the host has waited for that update, visit() ...
#pragma once

#include <memory>

#include "core/optim/adam.h"
#include "core/tensor/host_buffer.h"
#include "launcher/train/sharding.h"
#include "launcher/train/train_state.h"

namespace fathom::launcher {

class StateSnapshot {
 public:
  // Collective; all references outlive it. `is_kept`: on rank 0.
  StateSnapshot(const ParameterStore& store, optim::Adam& adam, const Sharding& sharding,
                bool is_kept);
  ~StateSnapshot();
  StateSnapshot(const StateSnapshot&) = delete;
  StateSnapshot& operator=(const StateSnapshot&) = delete;

  // Queues the copies behind all work that the compute context has been given so far. Overwrites the
  // snapshot before. Collective.
  void begin();
  // Work that the compute context is given from here on waits for the copies.
  void hold_updates();
  // Waits for the copies alone.
  void synchronise();

  // Where the snapshot is kept, once the copies are done.
  void visit(checkpoint::Archive& archive);

 private:
  const ParameterStore& store_;
  optim::Adam& adam_;
  Context& copies_;
  bool is_kept_;
  std::unique_ptr<dist::SliceGather> gather_;    // of sharded moments
  tensor::HostBuffer weights_, first_, second_;  // made by the first begin()
  int64_t updates_ = 0;
  tensor::Event taken_;
};

}  // namespace fathom::launcher
