// Where a checkpoint comes from, for people and for a resume; never compared as state.
#pragma once

#include <string>

#include "core/data/prepare.h"
#include "launcher/config/config.h"

namespace fathom::launcher {

// A JSON object: config (YAML text) and its hash, data hash, version, numerics, ranks, counters.
[[nodiscard]] std::string provenance_json(const Config& config, const data::PreparedData& data,
                                          const std::string& numerics, int ranks,
                                          const std::string& counters);

// Parts of it again; empty where it is missing.
[[nodiscard]] std::string provenance_text(const std::string& json, const std::string& key);

}  // namespace fathom::launcher
