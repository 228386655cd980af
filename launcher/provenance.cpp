#include "launcher/provenance.h"

#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

#include "core/base/hash.h"
#include "launcher/config/show.h"
#include "launcher/json_members.h"
#include "launcher/version.h"

namespace fathom::launcher {

std::vector<ConfigChange> changes_at(const std::vector<ConfigChange>& changes, int64_t step) {
  std::vector<ConfigChange> found;
  std::copy_if(changes.begin(), changes.end(), std::back_inserter(found),
               [step](const ConfigChange& change) { return change.step == step; });
  return found;
}

std::string provenance_json(const Config& config, const std::vector<ConfigChange>& changes,
                            const data::PreparedData& data, const std::string& numerics,
                            int ranks) {
  nlohmann::json list = nlohmann::json::array();
  for (const ConfigChange& c : changes)
    list.push_back({{"step", c.step}, {"key", c.key}, {"from", c.old_value}, {"to", c.new_value}});
  const nlohmann::json json = {{"config", to_yaml(config)},
                               {"config_hash", config_hash(config)},
                               {"data", data.content_hash},
                               {"tokenizer", xxh3_128(data.tokenizer->bytes())},
                               {"training_tokens", data.train.hash()},
                               {"validation_tokens", data.valid ? data.valid->hash() : ""},
                               {"version", version()},
                               {"commit", commit()},
                               {"numerics", numerics},
                               {"ranks", ranks},
                               {"changes", list}};
  return json.dump();
}

std::string provenance_text(const std::string& text, const std::string& key) {
  return text_member(text, key);
}

std::vector<ConfigChange> provenance_changes(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  std::vector<ConfigChange> changes;
  if (!json.is_object() || !json.contains("changes") || !json["changes"].is_array()) return changes;
  for (const nlohmann::json& c : json["changes"])
    if (c.is_object())
      changes.push_back({.step = c.value("step", int64_t{0}),
                         .key = c.value("key", ""),
                         .old_value = c.value("from", ""),
                         .new_value = c.value("to", "")});
  return changes;
}

}  // namespace fathom::launcher
