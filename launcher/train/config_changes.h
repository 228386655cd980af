// Keys that resumes changed, as JSON: the same in events.jsonl and result.json.
#pragma once

#include <vector>

#include "launcher/provenance.h"
#include "monitoring/json.h"

namespace fathom::launcher {

// [{"step":N,"key":...,"from":...,"to":...}, ...], oldest first.
[[nodiscard]] inline monitoring::Array as_json(const std::vector<ConfigChange>& changes) {
  monitoring::Array list;
  for (const ConfigChange& c : changes)
    list.emplace_back(monitoring::Object{
        {"step", c.step}, {"key", c.key}, {"from", c.old_value}, {"to", c.new_value}});
  return list;
}

}  // namespace fathom::launcher
