// Every metric of the program: those of monitoring/catalogue.h and, from the table of core/observe,
// one for each layer statistic.
#pragma once

#include <vector>

#include "monitoring/catalogue.h"

namespace fathom::launcher {

// monitoring::BlockGauge(i) is row i of observe::layer_statistics().
[[nodiscard]] const std::vector<monitoring::MetricInfo>& metric_catalogue();

}  // namespace fathom::launcher
