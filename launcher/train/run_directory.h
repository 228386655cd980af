// The run's directory on rank 0: locked, searched for a checkpoint to resume from, and given
// the files that describe the run. Rank 0 decides and tells the others, so they cannot decide
// differently.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/directory.h"
#include "checkpoint/run_lock.h"
#include "core/data/prepare.h"
#include "dist/communicator.h"
#include "launcher/config/config.h"
#include "launcher/provenance.h"
#include "launcher/train/run_options.h"
#include "monitoring/log.h"

namespace fathom::launcher {

// What rank 0 holds of it; the lock outlives the directory handle.
struct RunDirectory {
  std::optional<checkpoint::RunLock> lock;
  std::optional<checkpoint::CheckpointDirectory> checkpoints;
};

struct Resume {
  std::optional<checkpoint::Checkpoint> checkpoint;  // on rank 0, when the run goes on
  bool resumes = false;                              // the same on every rank
  std::optional<Config> before;                      // of the checkpoint, on every rank
  std::vector<ConfigChange> changes;  // on rank 0: by every resume so far; of this one, its step
  std::string run_id;
  int64_t attempt = 1;
  int64_t rejected = 0;  // newer checkpoints that were not valid
  bool has_other_validation = false;  // the text of data.valid is another one than before
};

// On rank 0: makes and locks the directory. Throws InvalidArgument when another process holds it,
// IoError when it cannot be written.
[[nodiscard]] RunDirectory open_run_directory(const Config& config, int rank,
                                              const monitoring::Log& log);

// Collective. `config` gets the virtual shards that the run has. CheckpointError (exit 4) when there
// are only invalid checkpoints, none although the run has saved some, or none and `--resume
// require`; InvalidArgument for `never` in a used directory, for a config that this resume may not
// change, and for shards that do not fit.
[[nodiscard]] Resume decide_resume(Config& config, const RunOptions& options, RunDirectory& run,
                                   dist::Communicator& group, const monitoring::Log& log);

// Deletes checkpoints later than the one that was chosen by its path, so that the next automatic
// resume does not jump to them. Call it once nothing can refuse the run any more.
void discard_later(const Resume& resume, RunDirectory& run);

// RUN/config.yaml: what the steps from here on are made with.
void write_config(const Config& config);
// RUN/tokenizer.model.
void write_tokenizer(const Config& config, const data::PreparedData& data);

// What RUN/result.json says. No status: the run did not end.
struct LastResult {
  std::string status;
  int64_t step = 0;
};
[[nodiscard]] LastResult last_result(const Config& config);

}  // namespace fathom::launcher
