#include "launcher/train/run_directory.h"

#include <cerrno>
#include <cstdio>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "launcher/config/show.h"
#include "launcher/json_members.h"

namespace fathom::launcher {

namespace fs = std::filesystem;

NewRunFiles::NewRunFiles(const fs::path& run) {
  for (const char* name : {".lock", ".owner", checkpoint::kCheckpointsName})
    if (!fs::exists(fs::symlink_status(run / name))) made_.push_back(run / name);
  for (fs::path path = fs::absolute(run).lexically_normal(); !fs::exists(path);
       path = path.parent_path())
    made_.push_back(path);
}

// A directory that is not empty stays.
NewRunFiles::~NewRunFiles() {
  std::error_code ignored;
  for (const fs::path& path : made_) fs::remove(path, ignored);
}

RunDirectory open_run_directory(const Config& config, int rank, const monitoring::Log& log) {
  RunDirectory run;
  if (rank != 0) return run;
  const fs::path directory = config.run.directory;
  run.new_files = std::make_unique<NewRunFiles>(directory);
  make_directories("run.directory", directory);
  run.lock = std::make_unique<checkpoint::RunLock>(checkpoint::RunLock::acquire(directory));
  if (!run.lock->note().empty()) log.warn(run.lock->note());
  run.checkpoints.emplace(checkpoint::CheckpointDirectory::open_for_writing(directory, *run.lock));
  return run;
}

fs::path replace_run_directory(RunDirectory& run, const Config& config,
                               const monitoring::Log& log) {
  const fs::path directory = fs::canonical(config.run.directory);
  const fs::path aside = directory.string() + ".replaced-" + utc_stamp();
  run.lock->require_owner();
  // Not onto an empty directory, which rename would replace.
  const bool is_free = !fs::exists(fs::symlink_status(aside));
  if (!is_free || ::rename(directory.c_str(), aside.c_str()) != 0)
    fail_io("run.directory", "moving the old run aside", directory, is_free ? errno : EEXIST);
  sync_parent("run.directory", aside);
  run.new_files->keep();
  run = {};
  run = open_run_directory(config, 0, log);
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
