// The list of topologies. To add one, write one file with a function that describes it, declare
// the function here and enter it in registry.cpp: config keys, their errors, their documentation
// and the tests that hold for every topology follow from the description.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/topology/options.h"
#include "core/topology/topology.h"

namespace fathom::topology {

struct TopologyInfo {
  std::string name;       // in `model.topology`
  std::string placement;  // where the norms sit, a phrase: "after every sum (Post-LN)"
  std::vector<TopologyOption> options = {};
  std::unique_ptr<Topology> (*make)(const TopologyOptions& options, const ModelShape& shape,
                                    StackKind stack);
};

[[nodiscard]] const std::vector<TopologyInfo>& topologies();

// Throws InvalidArgument listing the names.
[[nodiscard]] const TopologyInfo& find_topology(const std::string& name);

// Throws InvalidArgument as find_topology and TopologyOptions do.
[[nodiscard]] std::unique_ptr<Topology> make_topology(
    const std::string& name, const std::map<std::string, std::string>& options,
    const ModelShape& shape, StackKind stack);

[[nodiscard]] std::vector<std::string> topology_names();

// TopologyInfo::make for a class made from (options, shape, stack), or from (shape, stack).
template <class T>
[[nodiscard]] std::unique_ptr<Topology> make(const TopologyOptions& options,
                                             const ModelShape& shape, StackKind stack) {
  if constexpr (std::is_constructible_v<T, const TopologyOptions&, const ModelShape&, StackKind>)
    return std::make_unique<T>(options, shape, stack);
  else
    return std::make_unique<T>(shape, stack);
}

// One file each.
[[nodiscard]] TopologyInfo post_ln();
[[nodiscard]] TopologyInfo pre_ln();
[[nodiscard]] TopologyInfo residual();
[[nodiscard]] TopologyInfo deepnorm();
[[nodiscard]] TopologyInfo sub_ln();
[[nodiscard]] TopologyInfo admin();
[[nodiscard]] TopologyInfo hyper_connections();
[[nodiscard]] TopologyInfo denseformer();
[[nodiscard]] TopologyInfo branchnorm();

}  // namespace fathom::topology
