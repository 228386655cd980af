// From a command line to a run that can take its first step: lock, resume decision, data, agreement
// of all ranks. Rank 0 decides and the others are told, so they cannot decide differently.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "checkpoint/directory.h"
#include "checkpoint/run_lock.h"
#include "core/data/prepare.h"
#include "dist/communicator.h"
#include "launcher/config/config.h"
#include "launcher/sharding.h"
#include "launcher/train_state.h"
#include "monitoring/log.h"

namespace fathom::launcher {

// What rank 0 holds of the run directory; the lock outlives the directory handle.
struct RunDirectory {
  std::optional<checkpoint::RunLock> lock;
  std::optional<checkpoint::CheckpointDirectory> checkpoints;
};

struct Resume {
  std::optional<checkpoint::Checkpoint> checkpoint;  // on rank 0, when the run goes on
  bool resumes = false;                              // the same on every rank
  std::string run_id;
  int64_t attempt = 1;
  int64_t rejected = 0;  // newer checkpoints that were not valid
};

// On rank 0: makes and locks the directory. Throws InvalidArgument when another process holds it,
// IoError when it cannot be written.
[[nodiscard]] RunDirectory open_run_directory(const Config& config, int rank,
                                              const monitoring::Log& log);

// `mode`: auto, never, require, or a path. Collective. CheckpointError (exit 4) when there are only
// invalid checkpoints, or none and `require`; InvalidArgument for `never` in a used directory and
// for a config that a resume may not change.
[[nodiscard]] Resume decide_resume(const Config& config, const std::string& mode, RunDirectory& run,
                                   dist::Communicator& group, const monitoring::Log& log);

// Rank 0 prepares, then the others find it ready, or build their own where they do not see it.
[[nodiscard]] data::PreparedData prepare_data(const Config& config, dist::Communicator& group,
                                              const monitoring::Log& log);

// Writes RUN/config.yaml: what the steps from here on are made with.
void keep_config(const Config& config);

// A run goes on with the tokens it was started with. DataError when the texts have changed since.
void check_same_data(const Resume& resume, const data::PreparedData& data);

// A run that goes on under other kernels rounds differently: allowed, with a warning. `now` is the
// device's numerics.
void check_same_numerics(const Resume& resume, const std::string& now, const monitoring::Log& log);

// Deletes checkpoints later than the one that was chosen by its path, so that the next automatic
// resume does not jump to what was abandoned. Call it when nothing can refuse the run any more.
void abandon_later(const Resume& resume, RunDirectory& run);

// All ranks must have the same config, program, numerics and data.
void check_ranks_agree(const Config& config, const data::PreparedData& data,
                       const std::string& numerics, dist::Communicator& group);

// Fills the model's and the loop's state from rank 0's checkpoint, on every rank. Collective.
void load_state(const Resume& resume, TrainState& state, const Sharding& sharding,
                dist::Communicator& group);

// The weights of another run's checkpoint (rank 0 reads it). Collective.
void load_weights(const std::string& path, const Config& config, model::Transformer& model,
                  dist::Communicator& group, const monitoring::Log& log);

}  // namespace fathom::launcher
