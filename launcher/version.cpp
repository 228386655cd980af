#include "launcher/version.h"

#include "core/tensor/device.h"
#include "dist/mpi_session.h"

namespace fathom::launcher {

std::string version() { return FATHOM_VERSION; }
std::string built_with() {
  std::string numerics;
  try {
    numerics = tensor::make_cpu_device(1)->numerics();
  } catch (const DeviceError& error) {
    numerics = error.what();
  }
  return join("compiler: ", FATHOM_COMPILER, "\nlibraries: ", dist::mpi_library(), ", ",
              FATHOM_LIBRARIES, "\nnumerics: ", numerics);
}

}  // namespace fathom::launcher
