#include "tests/checkpoint/file_calls.h"

#include <cerrno>
#include <utility>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fathom::checkpoint {
namespace {

FileCallWatch current;

// The errno to fail with.
int watched(std::string_view function, const char* name) {
  if (!current) return 0;
  const FileCallWatch watch = std::exchange(current, nullptr);
  const int error = watch({function, name});
  current = watch;
  return error;
}

template <class... Arguments>
long call_unless(int error, long number, Arguments... arguments) {
  if (error == 0) return ::syscall(number, arguments...);
  errno = error;
  return -1;
}

}  // namespace

FileCallWatcher::FileCallWatcher(FileCallWatch watch) { current = std::move(watch); }
FileCallWatcher::~FileCallWatcher() { current = nullptr; }

}  // namespace fathom::checkpoint

// These stand before the C library's.
using fathom::checkpoint::call_unless;
using fathom::checkpoint::watched;

extern "C" int mkdirat(int folder, const char* name, mode_t mode) noexcept {
  return int(call_unless(watched("mkdirat", name), SYS_mkdirat, folder, name, mode));
}

extern "C" ssize_t write(int fd, const void* bytes, size_t count) {
  return call_unless(watched("write", ""), SYS_write, fd, bytes, count);
}

extern "C" int fsync(int fd) { return int(call_unless(watched("fsync", ""), SYS_fsync, fd)); }

extern "C" int renameat(int folder, const char* from, int to_folder, const char* to) noexcept {
  return int(call_unless(watched("renameat", to), SYS_renameat2, folder, from, to_folder, to, 0));
}

extern "C" int unlinkat(int folder, const char* name, int flags) noexcept {
  return int(call_unless(watched("unlinkat", name), SYS_unlinkat, folder, name, flags));
}
