#pragma once

#include <string>
#include <vector>

namespace fathom::launcher {

// What a start of `fathom train` asks for beyond its config.
struct RunOptions {
  std::string resume = "auto";                 // auto, never, require, or a path
  std::string init_from = {};                  // a checkpoint whose weights start a new run
  std::vector<std::string> allow_change = {};  // keys that a resume may change, see resume_rules.h
  bool profile = false;                        // a table of ops and RUN/trace.json, of a few steps
};

}  // namespace fathom::launcher
