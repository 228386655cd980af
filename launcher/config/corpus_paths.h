// Where the paths of a config lead. It can be shipped with its corpus: what is not found from the
// working directory is looked for in the folder of the config file.
#pragma once

#include <filesystem>

#include "launcher/config/config.h"

namespace fathom::launcher {

// Every path that begins with ~/, or is ~, begins with $HOME instead: a shell does not expand the
// tilde of key=~/path, and nobody that of a file. Without HOME it stays.
void expand_home(Config& config);

// Replaces data.train, data.valid and data.test by where their files are; one that is in neither
// place stays as it is, and whoever reads it says so.
void find_corpora(data::DataConfig& data, const std::filesystem::path& folder);

}  // namespace fathom::launcher
