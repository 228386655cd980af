// How a run is set up, in the words of the metric fathom_run_info.
#pragma once

#include "launcher/config/config.h"
#include "launcher/train/run_records.h"
#include "monitoring/metrics.h"

namespace fathom::launcher {

// Its label values. `start_seconds`: Unix time.
[[nodiscard]] monitoring::LabelValues run_info(const Config& config, const RunStart& start,
                                               double start_seconds);

}  // namespace fathom::launcher
