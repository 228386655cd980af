// EXPECT_THROW that also looks at the text.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace fathom {

template <class Kind, class F>
void expect_error(F&& f, const std::vector<std::string>& parts) {
  try {
    f();
    ADD_FAILURE() << "expected an error with '" << parts.front() << "', got none";
  } catch (const Kind& e) {
    for (const std::string& part : parts)
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos)
          << "'" << part << "' is not in: " << e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "error of another type: " << e.what();
  }
}

}  // namespace fathom
