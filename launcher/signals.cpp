#include "launcher/signals.h"

#include <array>
#include <atomic>
#include <csignal>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include <unistd.h>

#include "core/base/error.h"
#include "core/base/system.h"
#include "core/data/mapped_file.h"

namespace fathom::launcher {
namespace {

constexpr std::array kStopping = {SIGUSR1, SIGTERM, SIGINT, SIGHUP, SIGXCPU};

std::atomic<int> first_signal{0};
std::atomic<bool> is_save_requested{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void remember(int signal) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
}

void request_save(int) { is_save_requested = true; }

bool is_ignored(int signal) {
  struct sigaction now = {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

void say(std::string_view text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

bool is_first_rank = true, is_one_of_several = false;

// By what the launcher says, before MPI has started.
bool read_is_first_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"})
    if (const std::optional<std::string> rank = process_environment(name)) return *rank == "0";
  return true;
}

// Only what a signal handler may call. None of several ranks speaks about a SIGTERM, which mpirun
// sends when another rank has failed: the last line is then that one's cause. About another signal
// one speaks: a rank that is not the first waits for that one to end the job, which had the signal
// too unless it was sent to this rank alone.
void end(int signal) {
  constexpr timespec kTwoSeconds = {.tv_sec = 2, .tv_nsec = 0};
  const bool speaks = !is_one_of_several || signal != SIGTERM;
  if (speaks && !is_first_rank) nanosleep(&kTwoSeconds, nullptr);
  if (speaks)
    say("fathom train: interrupted before the first step by a signal; nothing was lost, run the "
        "same command to go on\n");
  _exit(int(ExitCode::kRequeue));
}

// Only what a signal handler may call.
void name_lost_file(int signal, siginfo_t* info, void*) {
  const char* path = data::mapped_file_at(info->si_addr);
  if (path == nullptr) {
    std::signal(signal, SIG_DFL);  // the instruction runs again and ends the process
    return;
  }
  say("fathom: data: ");
  say(path);
  say(" was cut short, or its disk failed, while it was in use; run `fathom prepare` and then the "
      "same command again\n");
  _exit(int(ExitCode::kData));
}

}  // namespace

void report_lost_pages() {
  struct sigaction action = {};
  action.sa_sigaction = name_lost_file;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

void install_signal_handlers(Stopping how) {
  is_first_rank = read_is_first_rank();
  is_one_of_several = read_launch().processes > 1;
  struct sigaction action = {};
  action.sa_handler = how == Stopping::kAtOnce ? end : remember;
  action.sa_flags = SA_RESTART;
  for (const int signal : kStopping)
    if (signal != SIGHUP || !is_ignored(SIGHUP)) sigaction(signal, &action, nullptr);
  action.sa_handler = request_save;
  sigaction(SIGUSR2, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  if (how == Stopping::kAtOnce && requested_stop() != 0) end(requested_stop());
}

int requested_stop() { return first_signal.load(); }

bool take_requested_save() { return is_save_requested.exchange(false); }

}  // namespace fathom::launcher
