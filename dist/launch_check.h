// Whether MPI sees the processes that the environment reports (core/base/system.h).
// A launcher and an MPI library that do not match start N processes that are each rank 0 of 1; they
// would train N times into one run directory. That is detected here and refused.
#pragma once

#include "core/base/system.h"

namespace fathom::dist {

// InvalidArgument when the launcher started more processes than the communicator has ranks.
void check_launch(int size, const Environment& environment = process_environment);

}  // namespace fathom::dist
