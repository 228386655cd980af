// `fathom config check`: everything that `fathom train` would refuse before its first step, at
// once, and what the run would be.
#pragma once

#include <string>
#include <vector>

#include "launcher/config/load.h"

namespace fathom::launcher {

// For people: pairs, steps of an epoch, series, parameters, memory of a rank, warnings. With
// problems it is not to be shown. Reads the texts; writes nothing.
[[nodiscard]] std::string check_config(const ConfigSource& source,
                                       const std::vector<std::string>& overrides,
                                       Problems& problems);

}  // namespace fathom::launcher
