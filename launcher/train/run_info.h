// How a run is set up, in the words of the metric fathom_run_info.
#pragma once

#include "launcher/config/config.h"
#include "monitoring/metrics.h"

namespace fathom::launcher {

// Its label values.
[[nodiscard]] monitoring::LabelValues run_info(const Config& config, int ranks);

}  // namespace fathom::launcher
