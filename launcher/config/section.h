// Makes the rows of a section from members of its struct. Internal to keys.cpp.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "launcher/config/schema.h"

namespace fathom::launcher {

template <class S>
struct Section {
  std::string name;
  S Config::*section;
  std::vector<Key>& keys;

  template <class T, class V>
  Key& operator()(const std::string& key, T S::*field, const Grammar<V>& grammar,
                  MayChange may_change, const std::string& meaning) const {
    const auto set = [=, in = section](Config& config, const YamlNode& node) {
      const std::optional<V> value = grammar.parse(node);
      if (value) config.*in.*field = T(*value);
      return value.has_value();
    };
    const auto get = [=, in = section](const Config& config) {
      return std::optional(grammar.format(V(config.*in.*field)));
    };
    return keys.emplace_back(Key{.name = name + "." + key,
                                 .type = grammar.type,
                                 .allowed = grammar.allowed,
                                 .meaning = meaning,
                                 .may_change = may_change,
                                 .choices = grammar.words,
                                 .set = set,
                                 .get = get});
  }

  // Of words, each for a value of the field.
  template <class T>
  Key& operator()(const std::string& key, T S::*field,
                  const std::vector<std::pair<std::string, std::type_identity_t<T>>>& values,
                  MayChange may_change, const std::string& meaning) const {
    return (*this)(key, field, choice(values), may_change, meaning);
  }
};
template <class S>
Section(const char*, S Config::*, std::vector<Key>&) -> Section<S>;

}  // namespace fathom::launcher
