// How runs stand, from the files in their directories. Nothing is opened for writing and no lock is
// taken, so a living run does not notice; what is damaged is said of that run alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fathom::launcher {

struct RunOverview {
  std::string name;  // of the directory
  std::filesystem::path directory;
  // running; completed, failed, interrupted or stopped, by result.json; crashed: it was begun, is
  // not running and has no result; damaged: something that says so cannot be read.
  std::string status;
  std::string note;  // where it runs, or why it ended
  std::optional<int64_t> step, max_steps;
  std::optional<double> loss;  // of the last step
  // The best validation by train.best_metric, of the steps that count.
  std::optional<double> validation_loss, bleu;
  std::optional<int64_t> validation_step;
  double written = 0;  // Unix time at which a file of it was last written to; 0: unknown
};

// Whether a directory is one of a run.
[[nodiscard]] bool is_run_directory(const std::filesystem::path& path);

// Throws nothing: errors are its status and note.
[[nodiscard]] RunOverview overview_of(const std::filesystem::path& run);

// Of the directories in `root` that are runs, by name; of `root` itself if it is one.
// InvalidArgument when there is no such directory, IoError when it cannot be read.
[[nodiscard]] std::vector<RunOverview> overviews_in(const std::filesystem::path& root);

}  // namespace fathom::launcher
