#include "core/topology/registry.h"

#include "core/base/error.h"

namespace fathom::topology {

const std::vector<TopologyInfo>& topologies() {
  static const std::vector<TopologyInfo> all = {post_ln(),           pre_ln(),      residual(),
                                                deepnorm(),          sub_ln(),      admin(),
                                                hyper_connections(), denseformer(), branchnorm()};
  return all;
}

const TopologyInfo& find_topology(const std::string& name) {
  std::string names;
  for (const TopologyInfo& topology : topologies()) {
    if (topology.name == name) return topology;
    names += (names.empty() ? "" : ", ") + topology.name;
  }
  fail("model.topology: got ", name, ", expected one of: ", names);
}

std::unique_ptr<Topology> make_topology(const std::string& name,
                                        const std::map<std::string, std::string>& options,
                                        const ModelShape& shape, StackKind stack) {
  const TopologyInfo& topology = find_topology(name);
  return topology.make({name, topology.options, options}, shape, stack);
}

std::vector<std::string> topology_names() {
  std::vector<std::string> names;
  for (const TopologyInfo& topology : topologies()) names.push_back(topology.name);
  return names;
}

}  // namespace fathom::topology
