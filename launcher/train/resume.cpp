#include "launcher/train/resume.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "checkpoint/resolve.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/system.h"
#include "launcher/config/load.h"
#include "launcher/config/resume_rules.h"
#include "launcher/json_members.h"
#include "launcher/train/run_config.h"

namespace fathom::launcher {
namespace {

namespace fs = std::filesystem;

std::string new_run_id() { return fmt::format("{:016x}", random_bits()); }

// Only config.yaml of an earlier start may be there.
bool is_used(const checkpoint::CheckpointDirectory& checkpoints, const fs::path& run) {
  return !checkpoints.list().empty() || fs::exists(run / "metrics.jsonl");
}

// By its own record. A run whose checkpoints were lost must not start anew unasked.
bool has_saved(const fs::path& run) {
  std::ifstream events(run / "events.jsonl");
  for (std::string line; std::getline(events, line);)
    if (text_member(line, "event") == "saved") return true;
  return false;
}

// Rank 0's search for what the run goes on from.
class Search {
 public:
  Search(const Config& config, const RunOptions& options, RunDirectory& run,
         const monitoring::Log& log)
      : options_(options),
        run_(run),
        log_(log),
        directory_(config.run.directory),
        recorded_(read_start(directory_)),
        asked_(record_of(options)) {}

  [[nodiscard]] Resume run() {
    Resume found;
    if (options_.overwrite)
      overwrite(found);
    else if (options_.resume == "never")
      start_anew(found);
    else if (names_a_path(options_.resume))
      go_on_from_path(found);
    else
      go_on_from_newest(found, options_.resume == "require");
    check_init_from(found);
    found.start = found.checkpoint ? recorded_ : asked_;  // what began the run stays on record
    if (found.is_branch || found.adopts) {
      found.start.resume = asked_.resume;
      found.start.resume_command = asked_.resume_command;
      found.start.is_done = false;
    } else if (!found.start.is_done) {
      found.start.resume = found.start.resume_command = "";  // this start does not go on with it
    }
    return found;
  }

 private:
  void overwrite(Resume& found) {
    require(options_.resume == "auto",
            "--overwrite: starts a new run, so it does not go with --resume ", options_.resume);
    if (!is_used(*run_.checkpoints, directory_)) return;
    const bool is_repeated = recorded_.overwrites &&
                             recorded_.overwrite_command == asked_.overwrite_command &&
                             recorded_.init_from == asked_.init_from;
    const bool is_lost = run_.checkpoints->list().empty() && has_saved(directory_);
    found.replaces = !is_repeated || is_lost;
    if (found.replaces) return;
    say_done("--overwrite");
    go_on_from_newest(found, false);
  }

  void start_anew(Resume& /*found*/) const {
    require(!is_used(*run_.checkpoints, directory_), "--resume never: ", directory_.string(),
            " already holds a run; choose another run.directory, or instead of --resume never give "
            "--overwrite, which moves the run aside");
  }

  void go_on_from_path(Resume& found) {
    const bool is_repeated =
        recorded_.resume == asked_.resume && recorded_.resume_command == asked_.resume_command;
    if (is_repeated && recorded_.is_done) {
      say_done("--resume " + options_.resume);
      return go_on_from_newest(found, false);
    }
    require<CheckpointError>(fs::exists(options_.resume), "--resume: ", options_.resume,
                             " does not exist; expected auto, never, require, or the path of a "
                             "checkpoint or run");
    found.checkpoint = checkpoint::open_checkpoint(options_.resume);
    if (is_of_this_run(*found.checkpoint)) {
      found.is_branch = true;
      return;
    }
    found.adopts = true;
    const bool was_cut_off = is_repeated;
    require(was_cut_off || !is_used(*run_.checkpoints, directory_), "--resume ", options_.resume,
            ": is of another run or branch, but ", directory_.string(),
            " already holds one; choose an empty run.directory");
  }

  void go_on_from_newest(Resume& found, bool is_required) {
    checkpoint::SearchResult search = run_.checkpoints->newest_valid();
    found.rejected = int64_t(search.skipped.size());
    for (const checkpoint::SkippedCheckpoint& skipped : search.skipped) {
      log_.warn(checkpoint::describe(skipped));
      run_.checkpoints->exclude(skipped);
    }
    found.checkpoint = std::move(search.checkpoint);
    if (found.checkpoint) return;
    require<CheckpointError>(
        search.skipped.empty(), directory_.string(), ": none of ", search.skipped.size(),
        " checkpoints is valid (reasons above); repair or remove them, or choose "
        "another run.directory");
    require<CheckpointError>(!is_required, directory_.string(),
                             ": --resume require, but there is no checkpoint");
    require<CheckpointError>(!has_saved(directory_), directory_.string(),
                             ": events.jsonl tells of checkpoints, but there is none; put them "
                             "back, or start anew with --overwrite");
    if (is_used(*run_.checkpoints, directory_))
      log_.warn(join(directory_.string(),
                     ": a run was started here but left no checkpoint; starting anew"));
  }

  // Weights of another run begin a new one. A run that began with them goes on from its own.
  void check_init_from(const Resume& found) const {
    if (options_.init_from.empty() || !found.checkpoint) return;
    require(!names_a_path(options_.resume),
            "--init-from: begins a new run, so it does not go with --resume ", options_.resume);
    require(recorded_.init_from == asked_.init_from, "--init-from ", options_.init_from, ": ",
            directory_.string(),
            " already holds a run, which did not begin with these weights; choose another "
            "run.directory, or move the run aside with --overwrite");
    say_done("--init-from " + options_.init_from);
  }

  // One of those in place, or a copy of one that this run has made: not what another branch of it
  // or a copy of the run has made since.
  [[nodiscard]] bool is_of_this_run(const checkpoint::Checkpoint& checkpoint) const {
    const fs::path here = fs::weakly_canonical(run_.checkpoints->path());
    if (checkpoint.path().parent_path() == here) return true;
    for (const std::string& name : Directory("run", here).names())
      if (name.starts_with("abandoned-")) return false;
    for (const checkpoint::CheckpointEntry& entry : run_.checkpoints->list()) try {
        const checkpoint::Manifest newest = checkpoint::read_manifest(entry.path);
        return newest.run_id == checkpoint.manifest().run_id &&
               newest.step >= checkpoint.manifest().step;
      } catch (const Error&) {
        // Damaged; the next one tells.
      }
    return false;
  }

  void say_done(const std::string& option) const {
    log_.info(join(option,
                   ": done by an earlier start of this command; going on from there (to do "
                   "it again remove ",
                   (directory_ / "start.json").string(), ")"));
  }

  const RunOptions& options_;
  RunDirectory& run_;
  const monitoring::Log& log_;
  const fs::path directory_;
  const StartRecord recorded_, asked_;
};

Config config_of_checkpoint(const std::string& text, const Config& config) {
  return parse_config(text, "the checkpoint's config", config.run.name);
}

// The run's identity goes on with it, and what was changed on the way. Returns the config that the
// checkpoint was made with, as text.
std::string continue_run(const Config& config, const RunOptions& options, Resume& resume) {
  const checkpoint::Manifest& manifest = resume.checkpoint->manifest();
  std::string old = provenance_text(manifest.provenance, "config");
  require<CheckpointError>(!old.empty(), resume.checkpoint->path().string(),
                           ": carries no config; was it written by another program?");
  resume.changes = provenance_changes(manifest.provenance);
  const Config before = config_of_checkpoint(old, config);
  Config now = config;
  settle_shards(now.batch, before);
  for (const auto& [key, old_value, new_value] : check_resume(before, now, options.allow_change))
    resume.changes.push_back({manifest.step, key, old_value, new_value});
  resume.run_id = manifest.run_id;
  resume.attempt = manifest.attempt + 1;
  return old;
}

}  // namespace

Resume decide_resume(Config& config, const RunOptions& options, RunDirectory& run,
                     dist::Communicator& group, const monitoring::Log& log) {
  Resume resume;
  std::string before;
  if (group.rank() == 0) {
    resume = Search(config, options, run, log).run();
    if (resume.checkpoint)
      before = continue_run(config, options, resume);
    else
      resume.run_id = new_run_id();
  }
  resume.resumes = group.all_reduce_max(resume.checkpoint.has_value()) == 1;
  resume.is_branch = group.all_reduce_max(resume.is_branch) == 1;
  group.broadcast(resume.run_id, 0);
  group.broadcast(before, 0);
  if (resume.resumes) resume.before = config_of_checkpoint(before, config);
  resume.attempt = group.all_reduce_max(resume.attempt);
  settle_shards(config.batch, resume.before);
  check_shards(config, group.size());
  return resume;
}

void begin_start(const Resume& resume, RunDirectory& run, const Config& config) {
  StartRecord record = resume.start;
  if (record != read_start(config.run.directory)) write_start(config.run.directory, record);
  if (resume.adopts) {
    run.checkpoints->adopt(*resume.checkpoint);
    record.is_done = true;
    write_start(config.run.directory, record);
  }
  if (resume.is_branch) run.checkpoints->begin_branch(resume.checkpoint->manifest().step);
}

}  // namespace fathom::launcher
