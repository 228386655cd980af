// Which Fathom this is.
#pragma once

#include <string>

namespace fathom::launcher {

[[nodiscard]] std::string version();     // "0.1.0"
[[nodiscard]] std::string commit();      // short hash, or "unknown" outside of a checkout
[[nodiscard]] std::string built_with();  // compiler, libraries and cpu device, a line each;
                                         // loads BLAS

}  // namespace fathom::launcher
