#include "launcher/train/run_directory.h"

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
#include "launcher/config/show.h"
#include "launcher/json_members.h"
#include "launcher/provenance.h"
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
  for (std::string line; std::getline(events, line);) {
    if (text_member(line, "event") == "saved") return true;
  }
  return false;
}

std::optional<checkpoint::Checkpoint> newest(const fs::path& directory, bool is_required,
                                             RunDirectory& run, int64_t& rejected,
                                             const monitoring::Log& log) {
  checkpoint::SearchResult found = run.checkpoints->newest_valid();
  rejected = int64_t(found.skipped.size());
  for (const checkpoint::SkippedCheckpoint& skipped : found.skipped) {
    log.warn(checkpoint::describe(skipped));
    run.checkpoints->exclude(skipped);
  }
  if (found.checkpoint) return std::move(found.checkpoint);
  require<CheckpointError>(
      found.skipped.empty(), directory.string(), ": none of ", found.skipped.size(),
      " checkpoints is valid (reasons above); repair or remove them, or choose "
      "another run.directory");
  require<CheckpointError>(!is_required, directory.string(),
                           ": --resume require, but there is no checkpoint");
  require<CheckpointError>(!has_saved(directory), directory.string(),
                           ": events.jsonl tells of checkpoints, but there is none; put them back, "
                           "or choose another run.directory to start anew");
  if (is_used(*run.checkpoints, directory))
    log.warn(
        join(directory.string(), ": a run was started here but left no checkpoint; starting anew"));
  return std::nullopt;
}

std::optional<checkpoint::Checkpoint> find_checkpoint(const Config& config, const std::string& mode,
                                                      RunDirectory& run, int64_t& rejected,
                                                      const monitoring::Log& log) {
  const fs::path directory = config.run.directory;
  if (mode == "never") {
    require(!is_used(*run.checkpoints, directory), "--resume never: ", directory.string(),
            " already holds a run; choose another run.directory or leave --resume out");
    return std::nullopt;
  }
  if (mode == "auto" || mode == "require")
    return newest(directory, mode == "require", run, rejected, log);
  require<CheckpointError>(fs::exists(mode), "--resume: ", mode,
                           " does not exist; expected auto, never, require, or the path of a "
                           "checkpoint or run");
  return checkpoint::open_checkpoint(mode);
}

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

RunDirectory open_run_directory(const Config& config, int rank, const monitoring::Log& log) {
  RunDirectory run;
  if (rank != 0) return run;
  const fs::path directory = config.run.directory;
  make_directories("run.directory", directory);
  run.lock.emplace(checkpoint::RunLock::acquire(directory));
  if (!run.lock->note().empty()) log.warn(run.lock->note());
  run.checkpoints.emplace(checkpoint::CheckpointDirectory::open_for_writing(directory, *run.lock));
  return run;
}

Resume decide_resume(Config& config, const RunOptions& options, RunDirectory& run,
                     dist::Communicator& group, const monitoring::Log& log) {
  Resume resume;
  std::string before;
  if (group.rank() == 0) {
    resume.checkpoint = find_checkpoint(config, options.resume, run, resume.rejected, log);
    if (resume.checkpoint)
      before = continue_run(config, options, resume);
    else
      resume.run_id = new_run_id();
  }
  resume.resumes = group.all_reduce_max(resume.checkpoint.has_value()) == 1;
  group.broadcast(resume.run_id, 0);
  group.broadcast(before, 0);
  if (resume.resumes) resume.before = config_of_checkpoint(before, config);
  resume.attempt = group.all_reduce_max(resume.attempt);
  settle_shards(config.batch, resume.before);
  check_shards(config, group.size());
  return resume;
}

void discard_later(const Resume& resume, RunDirectory& run) {
  if (resume.checkpoint && run.checkpoints)
    run.checkpoints->discard_after(resume.checkpoint->manifest().step);
}

void write_config(const Config& config) {
  write_file_durably("run", fs::path(config.run.directory) / "config.yaml", to_yaml(config));
}

void write_tokenizer(const Config& config, const data::PreparedData& data) {
  write_file_durably("run", fs::path(config.run.directory) / "tokenizer.model",
                     data.tokenizer->bytes());
}

LastResult last_result(const Config& config) {
  const std::optional<std::string> text =
      read_if_there("run", fs::path(config.run.directory) / "result.json");
  return {.status = text_member(text.value_or(""), "status"),
          .step = integer_member(text.value_or(""), "step")};
}

}  // namespace fathom::launcher
