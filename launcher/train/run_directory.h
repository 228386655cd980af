// The run's directory on rank 0: locked, and given the files that describe the run.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/directory.h"
#include "checkpoint/run_lock.h"
#include "core/data/prepare.h"
#include "launcher/config/config.h"
#include "monitoring/log.h"

namespace fathom::launcher {

// What a start makes of a run's directory. Unless keep() is called it goes again, and a run that
// was moved aside for it comes back: a start that is refused leaves nothing behind.
class NewRunFiles {
 public:
  // Before anything is made. `aside`: where the run that was there is now; empty: there was none.
  explicit NewRunFiles(const std::filesystem::path& run, std::filesystem::path aside = {});
  NewRunFiles(const NewRunFiles&) = delete;
  NewRunFiles& operator=(const NewRunFiles&) = delete;
  ~NewRunFiles();

  void keep() { is_kept_ = true; }

 private:
  std::filesystem::path run_, aside_;
  std::vector<std::filesystem::path> made_;  // in the order of their removal
  bool is_kept_ = false;
};

// What rank 0 holds of it; the lock outlives the directory handle, and both the removal of new
// files.
struct RunDirectory {
  std::unique_ptr<checkpoint::RunLock> lock;  // stays where it is: the handle looks at it
  std::optional<checkpoint::CheckpointDirectory> checkpoints;
  std::unique_ptr<NewRunFiles> new_files;
};

// On rank 0: makes and locks the directory. Throws InvalidArgument when another process holds it,
// IoError when it cannot be written.
[[nodiscard]] RunDirectory open_run_directory(const Config& config, int rank,
                                              const monitoring::Log& log);

// Renames the run's directory to RUN.replaced-<UTC time> and opens a new one in its place; of a
// link, the directory to which it leads. Returns the new path of the old one. Errors as above.
std::filesystem::path replace_run_directory(RunDirectory& run, const Config& config,
                                            const monitoring::Log& log);

// RUN/config.yaml: what the steps from here on are made with.
void write_config(const Config& config);
// RUN/tokenizer.model, where it is not there already.
void write_tokenizer(const Config& config, const data::PreparedData& data);

// What RUN/result.json says. No status: the run did not end.
struct LastResult {
  std::string status;
  int64_t step = 0;
};
[[nodiscard]] LastResult last_result(const Config& config);

}  // namespace fathom::launcher
