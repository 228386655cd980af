// Reads a config: a YAML file, then `key=value` words that win over it. What is returned is checked
// as a whole and resolved: defaults filled in, other spellings (`model.depth`) replaced.
// Every error is InvalidArgument, with the place first: "FILE:LINE: KEY: got X, allowed Y; did you
// mean Z", or "command line: KEY: ...". Paths inside a config are relative to the working
// directory; see corpus_paths.h for those of corpora.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/config/config.h"

namespace fathom::launcher {

// `path` is a config file or a run's directory, which means the config.yaml in it. Such a file is
// of the run that it lies in, whatever its run.directory says, unless the command line names
// another. `run.name` defaults to the file's name without its ending. Corpora are looked for beside
// the file too.
[[nodiscard]] Config load_config(const std::filesystem::path& path,
                                 const std::vector<std::string>& overrides = {});

// The same from text; `source` is what messages call the file.
[[nodiscard]] Config parse_config(std::string_view text, const std::string& source,
                                  const std::string& default_name,
                                  const std::vector<std::string>& overrides = {});

// What a run needs beyond what any config needs: a training set and a validation set to steer by.
// Throws InvalidArgument; `source` is named in the message.
void check_complete(const Config& config, const std::string& source);

}  // namespace fathom::launcher
