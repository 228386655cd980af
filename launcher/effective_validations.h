// The validations of a run that count.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fathom::launcher {

// Lines of events.jsonl, by step: none of steps that a resume does again, and of a validation that
// was made twice the last. What is no JSON object is passed over.
[[nodiscard]] std::map<int64_t, std::string> effective_validations(
    const std::vector<std::string>& events);

}  // namespace fathom::launcher
