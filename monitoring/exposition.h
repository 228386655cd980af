// A snapshot as Prometheus metric families, for the exporter, and as the text of a scrape, for a
// file that node_exporter's textfile collector reads.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "monitoring/metrics.h"

namespace prometheus {
struct MetricFamily;
}

namespace fathom::monitoring {

// Families without a series are left out.
[[nodiscard]] std::vector<prometheus::MetricFamily> families_of(const Snapshot& snapshot);

// Text exposition format 0.0.4. Every series has `labels` besides its own.
[[nodiscard]] std::string exposition(const Snapshot& snapshot,
                                     const std::map<std::string, std::string>& labels = {});

}  // namespace fathom::monitoring
