#include "launcher/problems.h"

#include <algorithm>

namespace fathom::launcher {

ExitCode Problems::code() const {
  if (empty()) return ExitCode::kDone;
  for (const ExitCode code : {ExitCode::kUsage, ExitCode::kData})
    if (std::ranges::find(errors_, code, &Error::code) != errors_.end()) return code;
  return errors_.front().code();
}

}  // namespace fathom::launcher
