#include "launcher/train/run_directory.h"

#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "launcher/config/show.h"
#include "launcher/json_members.h"

namespace fathom::launcher {

namespace fs = std::filesystem;

namespace {

bool is_there(const fs::path& path) { return fs::exists(fs::symlink_status(path)); }

// What a process that was killed left of a file that it was about to replace.
void remove_unfinished(const fs::path& run) {
  const Directory directory("run.directory", run, Directory::Links::kFollow);
  for (const std::string& name : directory.names())
    if (name.starts_with(kTemporaryPrefix)) directory.remove(name);
}

}  // namespace

NewRunFiles::NewRunFiles(const fs::path& run, fs::path aside)
    : run_(run), aside_(std::move(aside)) {
  for (const char* name : {".lock", ".owner", "config.yaml", "start.json", "tokenizer.model",
                           "metrics.jsonl", "layers.jsonl", "events.jsonl", "result.json",
                           "targets.json", "metrics.prom", ".port", checkpoint::kCheckpointsName})
    if (!is_there(run / name)) made_.push_back(run / name);
  if (!aside_.empty()) made_.push_back(run);
  for (fs::path path = fs::absolute(run).lexically_normal(); !is_there(path);
       path = path.parent_path())
    made_.push_back(path);
}

// A directory that is not empty stays.
NewRunFiles::~NewRunFiles() {
  if (is_kept_) return;
  std::error_code ignored;
  for (const fs::path& path : made_) fs::remove(path, ignored);
  if (!aside_.empty() && !is_there(run_)) fs::rename(aside_, run_, ignored);
}

RunDirectory open_run_directory(const Config& config, int rank, const monitoring::Log& log) {
  RunDirectory run;
  if (rank != 0) return run;
  const fs::path directory = config.run.directory;
  run.new_files = std::make_unique<NewRunFiles>(directory);
  make_directories("run.directory", directory);
  run.lock = std::make_unique<checkpoint::RunLock>(checkpoint::RunLock::acquire(directory));
  if (!run.lock->note().empty()) log.warn(run.lock->note());
  remove_unfinished(directory);
  run.checkpoints.emplace(checkpoint::CheckpointDirectory::open_for_writing(directory, *run.lock));
  return run;
}

fs::path replace_run_directory(RunDirectory& run, const Config& config,
                               const monitoring::Log& log) {
  const fs::path directory = fs::canonical(config.run.directory);
  fs::path aside = free_path(directory.string() + ".replaced");
  run.lock->require_owner();
  if (::rename(directory.c_str(), aside.c_str()) != 0)
    fail_io("run.directory", "moving the old run aside", directory, errno);
  run.new_files->keep();
  run = {};
  auto new_files = std::make_unique<NewRunFiles>(directory, aside);
  make_directories("run.directory", directory);
  sync_parent("run.directory", aside);
  run = open_run_directory(config, 0, log);
  run.new_files->keep();
  run.new_files = std::move(new_files);
  return aside;
}

void write_config(const Config& config) {
  write_file_durably("run", fs::path(config.run.directory) / "config.yaml", to_yaml(config));
}

void write_tokenizer(const Config& config, const data::PreparedData& data) {
  const fs::path path = fs::path(config.run.directory) / "tokenizer.model";
  if (read_if_there("run", path) != std::string(data.tokenizer->bytes()))
    write_file_durably("run", path, data.tokenizer->bytes());
}

LastResult last_result(const Config& config) {
  const std::string text =
      read_if_there("run", fs::path(config.run.directory) / "result.json").value_or("");
  return {.status = text_member(text, "status"), .step = integer_member(text, "step")};
}

}  // namespace fathom::launcher
