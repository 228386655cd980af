// Reads a config: a YAML file, then `key=value` words that win over it. What is returned is checked
// as a whole and resolved: defaults filled in, other spellings (`model.depth`) replaced.
// Every error is InvalidArgument, with the place first: "FILE:LINE: KEY: got X, allowed Y; did you
// mean Z", or "command line: KEY: ...". Paths inside a config are relative to the working
// directory; see corpus_paths.h for those of corpora.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/config/config.h"
#include "launcher/problems.h"

namespace fathom::launcher {

// `path` is a config file or a run's directory, which means the config.yaml in it. Such a file is
// of the run that it lies in, whatever its run.directory says, unless the command line names
// another. `run.name` defaults to the file's name without its ending. Corpora are looked for beside
// the file too, and a path that begins with ~/ is in the home directory.
[[nodiscard]] Config load_config(const std::filesystem::path& path,
                                 const std::vector<std::string>& overrides = {});

// The same from text; `source` is what messages call the file.
[[nodiscard]] Config parse_config(std::string_view text, const std::string& source,
                                  const std::string& default_name,
                                  const std::vector<std::string>& overrides = {});

// What a run needs beyond what any config needs: a training set and a validation set to steer by.
// Throws InvalidArgument; `source` is named in the message.
void check_complete(const Config& config, const std::string& source);

// To find all problems of a config and not only the first, which is what the functions above throw.
struct ConfigSource {
  std::string text;
  std::string name;                   // in messages
  std::string run_name;               // where the config gives none
  std::filesystem::path folder = {};  // in which corpora are looked for too
  std::filesystem::path run = {};     // the run's directory in which it lies; empty: in none
};

// Of load_config's `path`. InvalidArgument when it cannot be read.
[[nodiscard]] ConfigSource config_source(const std::filesystem::path& path);
// To the end of a stream, "standard input"; the run's name is stdin.
[[nodiscard]] ConfigSource config_source(std::istream& in);

struct GatheredConfig {
  Config config;
  std::set<std::string> broken = {};  // sections of which something could not be read: it has its
                                      // default there, which nobody meant
};

// Notes what is wrong, in the order of load_config.
[[nodiscard]] GatheredConfig gather_config(const ConfigSource& source,
                                           const std::vector<std::string>& overrides,
                                           Problems& problems);
void check_complete(const Config& config, const std::string& source, Problems& problems);

}  // namespace fathom::launcher
