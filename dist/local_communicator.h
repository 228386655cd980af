// Ranks as threads of one process: for tests, and, with one rank, for a run without mpirun.
// Stricter than MPI: ranks that make different calls, or leave while others wait, get an error
// instead of a hang.
#pragma once

#include <memory>
#include <vector>

#include "dist/communicator.h"

namespace fathom::dist {

// Element r is rank r's handle, to be used by one thread. Throws InvalidArgument for size < 1.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_local_group(int size);

}  // namespace fathom::dist
