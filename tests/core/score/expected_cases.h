// The cases of data/expected.json with their hypothesis and reference lines; see data/README.md.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace fathom::score::test {

struct ExpectedCase {
  std::string name;
  std::vector<std::string> hypotheses;
  std::vector<std::vector<std::string>> references;  // one vector per stream
  nlohmann::json expected;
};

inline std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

inline std::vector<ExpectedCase> expected_cases() {
  const std::string directory = FATHOM_TEST_DATA;
  std::ifstream file(directory + "/expected.json");
  std::vector<ExpectedCase> cases;
  for (const nlohmann::json& expected : nlohmann::json::parse(file)) {
    const std::string name = expected.at("name");
    const std::string stem = directory + "/" + name;
    ExpectedCase c{name, read_lines(stem + ".hyp"), {}, expected};
    for (int r = 0; r < expected.at("references").get<int>(); ++r)
      c.references.push_back(read_lines(stem + ".ref" + std::to_string(r)));
    cases.push_back(std::move(c));
  }
  return cases;
}

// A signature of sacreBLEU's with our version in place of its own.
inline std::string with_our_version(const std::string& theirs) {
  return theirs.substr(0, theirs.find("version:")) + "version:fathom-" FATHOM_SCORE_VERSION;
}

// The text of the `Kind` that `act` throws; anything else thrown passes through and fails the test.
template <class Kind, class Act>
std::string message_of(Act act) {
  try {
    act();
  } catch (const Kind& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace fathom::score::test
