#include "launcher/config/show.h"

#include <array>

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "launcher/config/schema.h"

namespace fathom::launcher {

std::string to_yaml(const Config& config) {
  std::string out;
  std::string open_map;  // dotted path of the map that the last line stands in
  for (const Key& key : schema()) {
    const auto value = key.get(config);
    if (!value) continue;
    const size_t point = key.name.rfind('.');
    const std::string map = key.name.substr(0, point);
    const size_t outer = map.find('.');
    const std::string indent(outer == map.npos ? 2 : 4, ' ');
    if (map != open_map) {
      const bool same_section = open_map.substr(0, open_map.find('.')) == map.substr(0, outer);
      if (!same_section) out += map.substr(0, outer) + ":\n";
      if (outer != map.npos) out += "  " + map.substr(outer + 1) + ":\n";
      open_map = map;
    }
    out += indent + key.name.substr(point + 1) + ": " + *value + "\n";
  }
  return out;
}

std::string config_hash(const Config& config) {
  return fmt::format("{:016x}", hash_name(to_yaml(config)));
}

std::vector<Difference> differences(const Config& old_config, const Config& new_config) {
  std::vector<Difference> found;
  for (const Key& key : schema()) {
    const auto before = key.get(old_config);
    const auto after = key.get(new_config);
    if (before != after)
      found.push_back({.key = key.name,
                       .old_value = before.value_or("unset"),
                       .new_value = after.value_or("unset")});
  }
  return found;
}

bool resume_allowed(std::string_view key) {
  constexpr std::array<std::string_view, 5> kExact = {
      "run.name", "run.directory", "train.device", "train.threads", "model.recompute_activations"};
  constexpr std::array<std::string_view, 4> kPrefixes = {"train.max_", "checkpoint.", "monitoring.",
                                                         "dist."};
  if (key == "dist.reduction") return false;
  for (const std::string_view exact : kExact)
    if (key == exact) return true;
  for (const std::string_view prefix : kPrefixes)
    if (key.starts_with(prefix)) return true;
  return false;
}

void check_resume(const Config& old_config, const Config& new_config) {
  const optim::Schedule schedule = old_config.optimizer.schedule;
  require((schedule != optim::Schedule::kCosine && schedule != optim::Schedule::kLinear) ||
              old_config.train.max_steps == new_config.train.max_steps,
          "resume: train.max_steps: got ", new_config.train.max_steps,
          ", but the run was started with ", old_config.train.max_steps,
          " and its optimizer.schedule ends there; put it back, or start a new run");
  for (const Difference& difference : differences(old_config, new_config))
    require(resume_allowed(difference.key), "resume: ", difference.key, ": got ",
            difference.new_value, ", but the run was started with ", difference.old_value,
            "; put it back, or start a new run in another run.directory");
}

}  // namespace fathom::launcher
