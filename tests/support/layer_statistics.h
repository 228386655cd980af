// The table of layer statistics by name, for tests that check one row's number.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "core/observe/layer_statistics.h"

namespace fathom::support {

inline double statistic(std::string_view name, const observe::LayerSums& sums) {
  for (const observe::LayerStatistic& row : observe::layer_statistics())
    if (row.name == name) return row.value(sums);
  throw std::runtime_error("no layer statistic " + std::string(name));
}

// Those of activations.
struct ActivationStatistics {
  double hidden_rms = 0, omega = 0, omega_predicted = 0, branch_share = 0, cosine = 0;
};

inline ActivationStatistics statistics_of(const observe::BlockSums& activations) {
  const auto value = [&](std::string_view name) {
    return statistic(name, {.activations = activations, .parameters = {}});
  };
  return {.hidden_rms = value("hidden_rms"),
          .omega = value("omega"),
          .omega_predicted = value("omega_predicted"),
          .branch_share = value("branch_share"),
          .cosine = value("cosine")};
}

}  // namespace fathom::support
