// Everything that is wrong, found in one go: an error that would have ended the work is noted, and
// the search goes on with what does not depend on it.
#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"

namespace fathom::launcher {

class Problems {
 public:
  void add(const Error& error) { errors_.push_back(error); }

  // Runs f(). False: it threw an Error, which is noted. Other exceptions pass through.
  template <class F>
  bool attempt(const F& f) {
    try {
      f();
      return true;
    } catch (const Error& error) {
      add(error);
      return false;
    }
  }

  [[nodiscard]] bool empty() const { return errors_.empty(); }
  // In the order in which they were found.
  [[nodiscard]] const std::vector<Error>& errors() const { return errors_; }
  // What the program ends with: of a wrong config (2) if there is one, else of wrong data (3), else
  // of the first error; 0 if there is none.
  [[nodiscard]] ExitCode code() const;

 private:
  std::vector<Error> errors_;
};

}  // namespace fathom::launcher
