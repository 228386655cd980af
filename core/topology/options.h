// The options of a topology, under `model.topology_options`. They are declared beside the topology:
// the table of config keys, its errors and its documentation are made from the declaration.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::topology {

// A number, or one of `choices` where there are some.
struct TopologyOption {
  std::string name;
  std::string default_value;
  std::string meaning;  // a phrase: "factor on every block output"
  std::vector<std::string> choices = {};
  std::optional<double> above = {};  // a number must be greater than this

  [[nodiscard]] bool accepts(std::string_view text) const;
  [[nodiscard]] std::string allowed() const;  // "number > 0", "one of embedding, zero"
};

// nullptr: there is none of this name.
[[nodiscard]] const TopologyOption* find_option(const std::vector<TopologyOption>& known,
                                                std::string_view name);

// The value of every option of one topology: the given one, else the default.
class TopologyOptions {
 public:
  // Throws InvalidArgument naming the key: an option the topology does not have, or a value it does
  // not accept.
  TopologyOptions(const std::string& topology, const std::vector<TopologyOption>& known,
                  const std::map<std::string, std::string>& given);

  // `name` is declared; else std::out_of_range.
  [[nodiscard]] double number(const std::string& name) const;
  [[nodiscard]] const std::string& choice(const std::string& name) const;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace fathom::topology
