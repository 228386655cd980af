#include "launcher/collective.h"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "dist/watchdog.h"

namespace fathom::launcher {
namespace {

constexpr auto kStartLimit = std::chrono::minutes(10);  // hundreds of nodes start within it

}  // namespace

std::unique_ptr<dist::Session> start_session() {
  const dist::Watchdog watchdog(kStartLimit, [](const dist::Watchdog::Expiry& expiry) {
    std::cerr << join("fathom: start: no answer from all processes of the job within ",
                      int64_t(expiry.limit_seconds),
                      " s; is one of them stopped, or its node out of reach? Look at their logs "
                      "and start the run again\n")
              << std::flush;
    std::_Exit(int(ExitCode::kPeer));
  });
  return dist::start();
}

// An error that all ranks meet is reported by rank 0: the others give it the time to.
void end_all_ranks(dist::Communicator& world, int code, const std::string& text) {
  if (world.size() == 1) return;
  if (world.rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  std::cerr << join("fathom: rank ", world.rank(), ": ", text, "\n") << std::flush;
  world.abort(text, code);
}

}  // namespace fathom::launcher
