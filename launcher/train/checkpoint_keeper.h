// Saves while the training goes on. A save is two halves: a snapshot, taken while the next step's
// forward and backward run, and a commit, which writes it on a thread of rank 0. Whether that
// succeeded is known at a later step's agreement, on all ranks; a save waits for the one before,
// and the end of the run for the last one.
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <string>

#include "checkpoint/directory.h"
#include "core/base/thread.h"
#include "dist/watchdog.h"
#include "launcher/config/config.h"
#include "launcher/train/run_observer.h"
#include "launcher/train/state_snapshot.h"
#include "launcher/train/stop_agreement.h"

namespace fathom::launcher {

// What the keeper works with; all outlive it.
struct KeeperParts {
  const Config& config;
  checkpoint::CheckpointDirectory* directory = nullptr;  // on rank 0, else null
  StateSnapshot& snapshot;
  dist::Communicator& group;
  dist::Watchdog& watchdog;
  RunObserver& observer;
  // Where the state comes from, as JSON; asked at every snapshot, on rank 0.
  std::function<std::string()> provenance;
  std::string run_id;
  int64_t attempt = 1;
  // The run goes on from before its newest checkpoint; the first save, which comes at once, moves
  // those aside that are later.
  bool is_branch = false;
};

class CheckpointKeeper {
 public:
  // `saved_step`: of the checkpoint that the run goes on from, -1 without one. IoError when the
  // thread of rank 0 cannot be started.
  CheckpointKeeper(KeeperParts parts, int64_t saved_step);

  // After the step of `state`: by checkpoint.every_steps the same on all ranks, by
  // checkpoint.every_minutes on rank 0 alone, by its clock.
  [[nodiscard]] bool is_due(const TrainState& state) const;
  [[nodiscard]] bool is_due_by_time() const;

  // Begins to save the state after its last update, with what a validation of it has found if there
  // was one. Collective. Waits for a save still under way.
  void save(const TrainState& state,
            const std::optional<checkpoint::ValidationResult>& validation = {});

  // Instead of the update that would begin to write the snapshot: no step comes next.
  void write_now();

  // What a validation has found of the step of `state`, which is the state before it. It is laid
  // beside that step's checkpoint; where there is none, one is made if this is the best so far and
  // checkpoint.keep_best asks for it. Collective.
  void add_validation(const TrainState& state, const checkpoint::ValidationResult& validation,
                      bool is_best);

  // Around the update of every step: it comes after the snapshot, and once it is done (the host has
  // waited for it) so is the snapshot.
  void before_update();
  void after_update();

  // How the commit stands, on rank 0. The ranks' agreement spreads it, and every rank passes the
  // result to settle(). Any error but an IoError is thrown: the run cannot go on.
  [[nodiscard]] CommitOutcome poll();
  void settle(CommitOutcome outcome);  // collective

  // On return the state is saved. Collective. IoError when that failed.
  void finish(const TrainState& state,
              const std::optional<checkpoint::ValidationResult>& validation = {});

 private:
  enum class Stage { kIdle, kSnapshot, kCommit };

  void start_commit();
  void lay_beside(const checkpoint::ValidationResult& validation);
  void wait_for_commit(monitoring::RunState then);

  KeeperParts parts_;
  Stage stage_ = Stage::kIdle;  // the same on all ranks
  int64_t saved_step_, step_ = -1;
  bool is_unsaved_branch_;
  double last_begin_;        // of a save, monotonic seconds
  double wait_seconds_ = 0;  // of the loop, for the save under way
  // Rank 0's.
  std::optional<checkpoint::SavingArchive> archive_;
  checkpoint::SaveInfo info_;
  std::future<checkpoint::SaveReport> commit_;
  checkpoint::SaveReport report_;
  std::optional<Worker> writer_;  // ends before what it writes
  std::string failure_;           // of the last save, on all ranks; empty if it succeeded
};

}  // namespace fathom::launcher
