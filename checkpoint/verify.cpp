#include "checkpoint/verify.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/files.h"
#include "checkpoint/reader.h"
#include "checkpoint/validation_file.h"
#include "core/base/error.h"

namespace fathom::checkpoint {
namespace {

constexpr rlim_t kCpuSeconds = 60;                // plus one per 100 MB
constexpr rlim_t kMemoryBytes = rlim_t{1} << 30;  // plus twice the file
constexpr size_t kMaxReason = 4096;

void limit(__rlimit_resource_t resource, rlim_t value) {
  rlimit old{};
  if (::getrlimit(resource, &old) == 0 && old.rlim_max < value) value = old.rlim_max;
  const rlimit wanted{value, value};
  ::setrlimit(resource, &wanted);
}

// Relative to what the process already maps, since a sanitizer maps terabytes.
void limit_resources(const std::filesystem::path& path) {
  struct stat status {};
  const bool known = ::stat((path / kStateName).c_str(), &status) == 0;
  const rlim_t file_bytes = known ? rlim_t(status.st_size) : 0;
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  limit(RLIMIT_AS, pages * rlim_t(::sysconf(_SC_PAGESIZE)) + kMemoryBytes + 2 * file_bytes);
  limit(RLIMIT_CPU, kCpuSeconds + file_bytes / 100'000'000);
  limit(RLIMIT_CORE, 0);
}

std::string drain(const FileDescriptor& pipe) {
  std::string text;
  std::array<char, 1024> buffer;
  while (true) {
    const ssize_t got = ::read(pipe.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    if (text.size() < kMaxReason) text.append(buffer.data(), size_t(got));
  }
}

class SpawnActions {
 public:
  SpawnActions() { ::posix_spawn_file_actions_init(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

std::string verify(const std::filesystem::path& checkpoint, const std::filesystem::path& program) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    fail_io(kPlace, "making a pipe for", program, errno, Access::kReading);
  const FileDescriptor from_child(ends[0]);
  FileDescriptor to_parent(ends[1]);

  SpawnActions actions;
  ::posix_spawn_file_actions_addopen(actions.get(), 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(actions.get(), to_parent.get(), 1);
  std::array<std::string, 4> words = {program.string(), "checkpoint", "verify-child",
                                      checkpoint.string()};
  std::array<char*, 5> arguments = {words[0].data(), words[1].data(), words[2].data(),
                                    words[3].data(), nullptr};
  pid_t child = -1;
  const int error =
      ::posix_spawn(&child, program.c_str(), actions.get(), nullptr, arguments.data(), environ);
  if (error != 0) fail_io(kPlace, "starting", program, error, Access::kReading);
  to_parent = FileDescriptor();
  std::string reason = drain(from_child);

  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail_io(kPlace, "waiting for", program, errno, Access::kReading);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  while (!reason.empty() && reason.back() == '\n') reason.pop_back();
  if (WIFSIGNALED(status))
    return join("checkpoint ", checkpoint.string(), ": damaged: its reader was ended by signal ",
                WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")");
  return reason.empty() ? join("checkpoint ", checkpoint.string(),
                               ": its reader ended with exit code ", WEXITSTATUS(status))
                        : reason;
}

int verify_child_main(const std::string& path) {
  limit_resources(path);
  std::string reason;
  try {
    const Checkpoint checkpoint = Checkpoint::open(path);
    static_cast<void>(read_validation(checkpoint.path(), checkpoint.manifest()));
    return int(ExitCode::kDone);
  } catch (const std::exception& e) {
    reason = e.what();
  }
  // The parent goes by the exit code; a lost text only costs the reason.
  const ssize_t written = ::write(1, reason.data(), reason.size());
  static_cast<void>(written);
  return int(ExitCode::kCheckpoint);
}

}  // namespace fathom::checkpoint
