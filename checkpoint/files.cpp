#include "checkpoint/files.h"

#include <cerrno>

#include <sys/stat.h>

#include "core/base/error.h"
#include "core/base/system.h"

namespace fathom::checkpoint {
namespace {

FileDescriptor open_regular(const Directory& directory, const std::string& name, int64_t& size) {
  FileDescriptor file = directory.open_to_read(name);
  if (!file.is_open()) {
    const int error = errno;
    fail<CheckpointError>("checkpoint ", directory.path().string(), ": ", name,
                          error == ELOOP    ? " is a symbolic link, which is never followed"
                          : error == ENOENT ? " is missing"
                                            : " cannot be opened: " + errno_text(error));
  }
  struct stat status {};
  require<CheckpointError>(::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode),
                           "checkpoint ", directory.path().string(), ": ", name,
                           " is not a regular file");
  size = status.st_size;
  return file;
}

}  // namespace

int64_t regular_file_size(const Directory& directory, const std::string& name) {
  int64_t size = 0;
  static_cast<void>(open_regular(directory, name, size));
  return size;
}

Bytes read_regular_file(const Directory& directory, const std::string& name, int64_t size) {
  int64_t actual = 0;
  const FileDescriptor file = open_regular(directory, name, actual);
  const std::string where = directory.path().string();
  require<CheckpointError>(actual == size, "checkpoint ", where, ": ", name, " has ", actual,
                           " bytes, expected ", size, "; it is damaged");
  // A sparse file may claim any size; reading it would only invoke the kernel's OOM killer.
  require<CheckpointError>(size <= physical_memory(), "checkpoint ", where, ": ", name, " has ",
                           size, " bytes, this machine's memory ", physical_memory());
  Bytes bytes(static_cast<size_t>(size));
  size_t got = 0;
  const int error = read_all(file, bytes.span(), got);
  require<CheckpointError>(error == 0 && got == bytes.size(), "checkpoint ", where, ": reading ",
                           name, ": ", error == 0 ? "it became shorter" : errno_text(error));
  return bytes;
}

}  // namespace fathom::checkpoint
