// Where a run begins: anew, or from a checkpoint. Rank 0 decides and tells the others, so they
// cannot decide differently.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/reader.h"
#include "dist/communicator.h"
#include "launcher/config/config.h"
#include "launcher/provenance.h"
#include "launcher/train/run_directory.h"
#include "launcher/train/run_options.h"
#include "launcher/train/start_record.h"
#include "monitoring/log.h"

namespace fathom::launcher {

struct Resume {
  std::optional<checkpoint::Checkpoint> checkpoint;  // on rank 0, when the run goes on
  bool resumes = false;                              // the same on every rank
  std::optional<Config> before;                      // of the checkpoint, on every rank
  std::vector<ConfigChange> changes;  // on rank 0: by every resume so far; of this one, its step
  std::string run_id;
  int64_t attempt = 1;
  int64_t rejected = 0;               // newer checkpoints that were not valid
  bool has_other_validation = false;  // the text of data.valid is another one than before

  // By start options that act now, on rank 0 but for is_branch, which all ranks know.
  StartRecord start;       // that RUN/start.json is to hold
  bool is_branch = false;  // goes on from a chosen checkpoint of this run; later ones may be there
  bool adopts = false;     // from another run's checkpoint, which is to be copied into this one
  bool replaces = false;   // a run that is there is to be moved aside
};

// Collective. `config` gets the virtual shards that the run has. Changes nothing in the directory.
// CheckpointError (exit 4) when there are only invalid checkpoints, none although the run has saved
// some, or none and `--resume require`; InvalidArgument for options that do not fit what the
// directory holds, for a config that this resume may not change, and for shards that do not fit.
[[nodiscard]] Resume decide_resume(Config& config, const RunOptions& options, RunDirectory& run,
                                   dist::Communicator& group, const monitoring::Log& log);

// On rank 0, once nothing can refuse the run any more: copies and records what decide_resume() has
// found to be done.
void begin_start(const Resume& resume, RunDirectory& run, const Config& config);

}  // namespace fathom::launcher
