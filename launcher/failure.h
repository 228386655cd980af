// What ends the program, as exit code and last line: the same from main and from a rank of many.
#pragma once

#include <exception>
#include <string>

#include "core/base/error.h"

namespace fathom::launcher {

struct Failure {
  ExitCode code = ExitCode::kIo;
  std::string text;
};
[[nodiscard]] Failure failure_of(const std::exception& error);

}  // namespace fathom::launcher
