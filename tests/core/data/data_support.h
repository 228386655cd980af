// Shared by the tests of core/data: a temporary directory, a small corpus, errors as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "tests/support/temporary_directory.h"

namespace fathom::data::testing {

using support::read_text;

// Paths as text, since that is what a config holds.
class TemporaryDirectory {
 public:
  [[nodiscard]] std::string operator/(std::string_view name) const {
    return (directory_ / name).string();
  }
  std::string write(std::string_view name, std::string_view bytes) const {
    support::write_text(directory_ / name, bytes);
    return *this / name;
  }

 private:
  support::TemporaryDirectory directory_;
};

// The text of the `Kind` that `action` throws; for another kind, or none, a text that matches no
// expectation.
template <class Kind, class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Kind& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("<another type of error> ") + e.what();
  }
  return "<no error>";
}

// Sentences of a few dozen words, different for every i.
inline std::string sentence(int i, bool german) {
  static const std::vector<std::string> de{"der Hund", "die Katze",  "das Haus",  "ein Baum",
                                           "schläft",  "läuft weit", "ist schön", "singt heute"};
  static const std::vector<std::string> en{"the dog", "the cat",  "the house",    "a tree",
                                           "sleeps",  "runs far", "is beautiful", "sings today"};
  const std::vector<std::string>& words = german ? de : en;
  std::string text;
  for (int k = 0, x = i * 7919 + 13; k < 2 + i % 5; ++k, x = x / 3 + 17 * i + k)
    text += (k > 0 ? " " : "") + words[size_t(x) % words.size()];
  return text + (i % 2 != 0 ? "." : "!") + " " + std::to_string(i % 97);
}

inline std::string sentences(int n, bool german) {
  std::string all;
  for (int i = 0; i < n; ++i) all += sentence(i, german) + "\n";
  return all;
}

}  // namespace fathom::data::testing
