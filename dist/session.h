// The group of this process for the length of a command: MPI when a launcher started us, else a
// group of one (MPI_Init without a launcher would cost 0.4 s and start a daemon).
// Declare it before everything that holds a duplicate of world().
#pragma once

#include <memory>

#include "dist/communicator.h"
#include "dist/launch_check.h"

namespace fathom::dist {

class Session {
 public:
  virtual ~Session() = default;
  [[nodiscard]] virtual Communicator& world() = 0;
  // The ranks of this machine, in the order of world().
  [[nodiscard]] virtual Communicator& node() = 0;
  [[nodiscard]] virtual bool uses_mpi() const = 0;
};

// InvalidArgument when launcher and MPI library do not match (launch_check.h), DeviceError when MPI
// does not start, IoError when it would have too few threads.
[[nodiscard]] std::unique_ptr<Session> start(const Environment& environment = process_environment);

}  // namespace fathom::dist
