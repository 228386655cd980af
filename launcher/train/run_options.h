#pragma once

#include <string>
#include <vector>

#include "monitoring/log.h"

namespace fathom::launcher {

// What a start of `fathom train` asks for beyond its config.
struct RunOptions {
  std::string command = {};                    // all words of the start, to know it again
  std::string resume = "auto";                 // auto, never, require, or a path
  std::string init_from = {};                  // a checkpoint whose weights start a new run
  bool overwrite = false;                      // a run that is there is moved aside
  std::vector<std::string> allow_change = {};  // keys that a resume may change, see resume_rules.h
  // Of what stderr gets. kWarning: also no progress, and no last line of a run that completes.
  monitoring::LogLevel log_level = monitoring::LogLevel::kInfo;
  bool profile = false;  // a table of ops and RUN/trace.json, of a few steps
  int cores = 1;         // this rank's, see cores.h
};

// Whether this value of `resume` is a path.
[[nodiscard]] inline bool names_a_path(const std::string& resume) {
  return resume != "auto" && resume != "never" && resume != "require";
}

}  // namespace fathom::launcher
