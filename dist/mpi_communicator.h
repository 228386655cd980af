// A Communicator over MPI: a private duplicate of MPI_COMM_WORLD, errors returned and thrown as
// DeviceError naming the MPI call. Must be destroyed before its MpiSession.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "dist/communicator.h"
#include "dist/mpi_session.h"

namespace fathom::dist {

// MPI counts are ints: longer buffers are split into calls of at most this many elements or bytes.
inline constexpr int64_t kLargestMpiCount = std::numeric_limits<int32_t>::max();

// Collective. `largest_count` is lowered only by tests.
[[nodiscard]] std::unique_ptr<Communicator> make_mpi_communicator(
    const MpiSession& session, int64_t largest_count = kLargestMpiCount);

// Collective. The ranks of this machine, in the order of the world.
[[nodiscard]] std::unique_ptr<Communicator> make_node_communicator(const MpiSession& session);

}  // namespace fathom::dist
