// The list of topologies by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/topology/topology.h"

namespace fathom::core {

// Throws InvalidArgument listing the names, or naming an option the topology does not have.
[[nodiscard]] std::unique_ptr<Topology> make_topology(
    const std::string& name, const std::map<std::string, std::string>& options);
[[nodiscard]] std::vector<std::string> topology_names();

// One file each.
[[nodiscard]] std::unique_ptr<Topology> make_post_ln(TopologyOptions& options);
[[nodiscard]] std::unique_ptr<Topology> make_pre_ln(TopologyOptions& options);
[[nodiscard]] std::unique_ptr<Topology> make_residual(TopologyOptions& options);

}  // namespace fathom::core
