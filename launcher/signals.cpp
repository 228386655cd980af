#include "launcher/signals.h"

#include <atomic>
#include <csignal>
#include <string_view>

#include <unistd.h>

#include "core/base/error.h"

namespace fathom::launcher {
namespace {

std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void remember(int signal) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
}

// Only what a signal handler may call.
void end(int) {
  constexpr std::string_view kText =
      "fathom train: interrupted before the first step by a signal; nothing was lost, run the same "
      "command to go on\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
  _exit(int(ExitCode::kRequeue));
}

}  // namespace

void heed_signals(Stopping how) {
  struct sigaction action = {};
  action.sa_handler = how == Stopping::kAtOnce ? end : remember;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGUSR1, SIGTERM, SIGINT}) sigaction(signal, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

int requested_stop() { return first_signal.load(); }

}  // namespace fathom::launcher
