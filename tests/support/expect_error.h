// Runs f and checks the type of what it throws and a part of the message.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace fathom::support {

template <class Kind, class F>
[[nodiscard]] ::testing::AssertionResult throws_with(const std::string& part, F&& f) {
  try {
    f();
  } catch (const Kind& e) {
    if (std::string(e.what()).find(part) != std::string::npos) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "the message is: " << e.what();
  } catch (const std::exception& e) {
    return ::testing::AssertionFailure() << "threw another type: " << e.what();
  }
  return ::testing::AssertionFailure() << "threw nothing";
}

}  // namespace fathom::support
