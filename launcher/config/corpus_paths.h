// A config can be shipped with its corpus: what is not found from the working directory is looked
// for in the folder of the config file.
#pragma once

#include <filesystem>

#include "core/data/config.h"

namespace fathom::launcher {

// Replaces data.train, data.valid and data.test by where their files are; one that is in neither
// place stays as it is, and whoever reads it says so.
void find_corpora(data::DataConfig& data, const std::filesystem::path& folder);

}  // namespace fathom::launcher
