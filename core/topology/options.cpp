#include "core/topology/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/base/error.h"

namespace fathom::topology {
namespace {

// nullopt unless the whole text is a finite number. The same in every locale.
std::optional<double> parse(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

}  // namespace

bool TopologyOption::accepts(std::string_view text) const {
  if (!choices.empty()) return std::find(choices.begin(), choices.end(), text) != choices.end();
  const std::optional<double> value = parse(text);
  return value && (!above || *value > *above);
}

std::string TopologyOption::allowed() const {
  if (choices.empty()) return above ? join("number > ", *above) : "number";
  std::string list = "one of ";
  for (const std::string& choice : choices) list += (&choice == &choices[0] ? "" : ", ") + choice;
  return list;
}

const TopologyOption* find_option(const std::vector<TopologyOption>& known, std::string_view name) {
  const auto found = std::ranges::find(known, name, &TopologyOption::name);
  return found == known.end() ? nullptr : &*found;
}

TopologyOptions::TopologyOptions(const std::string& topology,
                                 const std::vector<TopologyOption>& known,
                                 const std::map<std::string, std::string>& given) {
  for (const TopologyOption& option : known) values_[option.name] = option.default_value;
  for (const auto& entry : given) {
    const std::string& name = entry.first;
    const TopologyOption* option = find_option(known, name);
    require(option != nullptr, "model.topology_options.", name, ": topology ", topology,
            " has no such option");
    require(option->accepts(entry.second), "model.topology_options.", name, ": got ", entry.second,
            ", allowed ", option->allowed());
    values_[name] = entry.second;
  }
}

double TopologyOptions::number(const std::string& name) const {
  return parse(values_.at(name)).value();
}

const std::string& TopologyOptions::choice(const std::string& name) const {
  return values_.at(name);
}

}  // namespace fathom::topology
