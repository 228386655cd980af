#include "launcher/provenance.h"

#include <nlohmann/json.hpp>

#include "core/base/hash.h"
#include "launcher/config/show.h"
#include "launcher/version.h"

namespace fathom::launcher {

std::string provenance_json(const Config& config, const data::PreparedData& data,
                            const std::string& numerics, int ranks, const std::string& counters) {
  const nlohmann::json json = {
      {"config", to_yaml(config)}, {"config_hash", config_hash(config)},
      {"data", data.content_hash}, {"tokenizer", xxh3_128(data.tokenizer->bytes())},
      {"version", version()},      {"commit", commit()},
      {"numerics", numerics},      {"ranks", ranks},
      {"counters", counters}};
  return json.dump();
}

std::string provenance_text(const std::string& text, const std::string& key) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains(key) || !json[key].is_string()) return {};
  return json[key].get<std::string>();
}

}  // namespace fathom::launcher
