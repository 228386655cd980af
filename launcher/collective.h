// Commands that run on every rank of mpirun or srun: how they start, and how an error ends them.
#pragma once

#include <memory>
#include <string>

#include "dist/session.h"
#include "launcher/failure.h"

namespace fathom::launcher {

// dist::start() with a limit: MPI waits indefinitely for a process of the job that is stopped or
// out of reach. After ten minutes this one says so and exits with kPeer.
[[nodiscard]] std::unique_ptr<dist::Session> start_session();

// Ends every rank, with `text` on stderr. Does nothing with a single rank. Under MPI it does not
// return.
void end_all_ranks(dist::Communicator& world, int code, const std::string& text);

// run(command, session, more...), and an error of one rank ends them all: its peers would wait in a
// collective indefinitely. The error is thrown again.
template <class Run, class Command, class... More>
[[nodiscard]] int on_all_ranks(dist::Session& session, Run& run, const Command& command,
                               More&... more) {
  try {
    return run(command, session, more...);
  } catch (const std::exception& error) {
    const Failure failure = failure_of(error);
    end_all_ranks(session.world(), int(failure.code), failure.text);
    throw;
  }
}

}  // namespace fathom::launcher
