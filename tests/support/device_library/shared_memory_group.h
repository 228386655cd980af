// Collectives of a host device between the ranks of one machine, processes or threads.
#pragma once

#include "core/kernels/collectives.h"

namespace fathom::kernels {

[[nodiscard]] Collectives shared_memory_collectives();

}  // namespace fathom::kernels
