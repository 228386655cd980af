// Where a checkpoint comes from, for people and for a resume; never compared as state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/prepare.h"
#include "launcher/config/config.h"

namespace fathom::launcher {

// A key that a resume changed on request, so steps after `step` learned otherwise than those
// before.
struct ConfigChange {
  int64_t step = 0;
  std::string key;
  std::string old_value, new_value;  // as YAML
};

[[nodiscard]] std::vector<ConfigChange> changes_at(const std::vector<ConfigChange>& changes,
                                                   int64_t step);

// A JSON object: config (YAML text) and its hash, changes of it, hashes of the data, version,
// numerics, ranks.
[[nodiscard]] std::string provenance_json(const Config& config,
                                          const std::vector<ConfigChange>& changes,
                                          const data::PreparedData& data,
                                          const std::string& numerics, int ranks);

// Parts of it again; empty where it is missing.
[[nodiscard]] std::string provenance_text(const std::string& json, const std::string& key);
[[nodiscard]] std::vector<ConfigChange> provenance_changes(const std::string& json);

}  // namespace fathom::launcher
