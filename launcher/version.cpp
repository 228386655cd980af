#include "launcher/version.h"

#include "core/tensor/device.h"

namespace fathom::launcher {

std::string version() { return FATHOM_VERSION; }
std::string commit() { return FATHOM_COMMIT; }
std::string built_with() {
  return join("compiler: ", FATHOM_COMPILER, "\nnumerics: ", tensor::cpu_numerics_fingerprint());
}

}  // namespace fathom::launcher
