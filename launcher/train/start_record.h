// RUN/start.json: the options that began a run, or the branch that it is on, and the command lines
// that gave them. They act once: the same command line again, as a job has that is requeued, goes
// on from where that start led. Another one acts anew.
#pragma once

#include <filesystem>
#include <string>

#include "launcher/train/run_options.h"

namespace fathom::launcher {

struct StartRecord {
  std::string resume = {};  // --resume PATH, absolute; empty: auto, never or require
  std::string resume_command = {};
  bool is_done = false;        // the run holds what --resume asked for
  std::string init_from = {};  // absolute; empty: none
  bool overwrites = false;
  std::string overwrite_command = {};

  [[nodiscard]] bool is_empty() const { return *this == StartRecord(); }
  bool operator==(const StartRecord&) const = default;
};

// Of a start with these options.
[[nodiscard]] StartRecord record_of(const RunOptions& options);

// An empty one where there is none, or none that can be read.
[[nodiscard]] StartRecord read_start(const std::filesystem::path& run);
void write_start(const std::filesystem::path& run, const StartRecord& record);

}  // namespace fathom::launcher
