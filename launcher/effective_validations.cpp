#include "launcher/effective_validations.h"

#include <nlohmann/json.hpp>

namespace fathom::launcher {

std::map<int64_t, std::string> effective_validations(const std::vector<std::string>& events) {
  using nlohmann::json;
  std::map<int64_t, std::string> by_step;
  for (const std::string& line : events) {
    const json event = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!event.is_object()) continue;
    const json kind = event.value("event", json()), step = event.value("step", json());
    if (!step.is_number_integer()) continue;
    if (kind == "started" || kind == "resumed")
      by_step.erase(by_step.upper_bound(step.get<int64_t>()), by_step.end());
    if (kind == "validated") by_step.insert_or_assign(step.get<int64_t>(), line);
  }
  return by_step;
}

}  // namespace fathom::launcher
