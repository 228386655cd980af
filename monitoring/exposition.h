// A snapshot as Prometheus metric families, for the exporter, and as the text of a scrape, for
// tests.
#pragma once

#include <string>
#include <vector>

#include "monitoring/metrics.h"

namespace prometheus {
struct MetricFamily;
}

namespace fathom::monitoring {

// Families without a series are left out.
[[nodiscard]] std::vector<prometheus::MetricFamily> families_of(const Snapshot& snapshot);

// Text exposition format 0.0.4.
[[nodiscard]] std::string exposition(const Snapshot& snapshot);

}  // namespace fathom::monitoring
