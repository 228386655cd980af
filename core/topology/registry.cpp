#include "core/topology/registry.h"

#include <array>

namespace fathom::core {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<Topology> (*make)(TopologyOptions&);
};

constexpr std::array kTopologies = {
    Entry{"post-ln", make_post_ln},
    Entry{"pre-ln", make_pre_ln},
    Entry{"residual", make_residual},
};

}  // namespace

std::unique_ptr<Topology> make_topology(const std::string& name,
                                        const std::map<std::string, std::string>& options) {
  std::string names;
  for (const Entry& entry : kTopologies) {
    if (name == entry.name) {
      TopologyOptions reader(name, options);
      return entry.make(reader);
    }
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  fail("model.topology: got ", name, ", expected one of: ", names);
}

std::vector<std::string> topology_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kTopologies) names.emplace_back(entry.name);
  return names;
}

}  // namespace fathom::core
