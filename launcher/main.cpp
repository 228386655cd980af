// The program: commands are in command_line.h, errors become exit codes here. From here down to a
// kernel: run_command_line, on_all_ranks, train, StepLoop::run, GradientStep::run,
// Transformer::losses, an op.
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/limits.h"
#include "launcher/command_line.h"
#include "launcher/failure.h"
#include "launcher/signals.h"

namespace {

// A file opened later must not become somebody's stdout, and a limit on file sizes is an error of
// the write, not the end of the process.
void make_safe() {
  while (true) {
    const int fd = open("/dev/null", O_RDWR);
    if (fd < 0) break;
    if (fd > 2) {
      close(fd);
      break;
    }
  }
  std::signal(SIGXFSZ, SIG_IGN);
  // Each thread's share of the heap takes 64 MiB of address space, filled or not.
  if (fathom::shell_limits().address_space) mallopt(M_ARENA_MAX, 1);
  fathom::launcher::report_lost_pages();
}

// A script must not take half an answer for a whole one.
int checked_output(int code) {
  std::cout.flush();
  const bool is_written = std::cout.good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (is_written || code != 0) return code;
  std::cerr << "fathom: standard output cannot be written; is the disk full?" << std::endl;
  return int(fathom::ExitCode::kIo);
}

}  // namespace

int main(int argc, char** argv) {
  make_safe();
  try {
    return checked_output(fathom::launcher::run_command_line(argc, argv));
  } catch (const std::exception& error) {
    const fathom::launcher::Failure failure = fathom::launcher::failure_of(error);
    std::cerr << "fathom: " << failure.text << std::endl;
    return int(failure.code);
  }
}
