// Preloaded into a program, this writes down in which order it changes files, for
// tests/system/durability_test.py. One line a call that succeeded, its words separated by tabs:
//
//   PID create|open|write|truncate|sync|close|mkdir|remove PATH      PID rename|exchange FROM TO
//
// Only what lies under the directory FATHOM_FILE_ROOT is recorded, in the file FATHOM_FILE_LOG.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

// The path that `name` means in the directory `folder`; an absolute one, links in it resolved but
// for the last name.
static const char* path_of(int folder, const char* name, char* path) {
  char parent[PATH_MAX], real[PATH_MAX];
  const char* slash = strrchr(name, '/');
  const char* last = slash ? slash + 1 : name;
  if (name[0] == '/')
    snprintf(parent, sizeof parent, "%.*s", slash == name ? 1 : (int)(slash - name), name);
  else if (folder == AT_FDCWD)
    snprintf(parent, sizeof parent, "./%.*s", (int)(last - name), name);
  else
    snprintf(parent, sizeof parent, "/proc/self/fd/%d/%.*s", folder, (int)(last - name), name);
  if (!realpath(parent, real)) return name;
  snprintf(path, PATH_MAX, "%.*s/%.*s", PATH_MAX / 2, real, PATH_MAX / 2 - 2, last);
  return path;
}

static const char* path_of_open(int fd, char* path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, PATH_MAX - 1);
  path[size < 0 ? 0 : size] = '\0';
  return path;
}

// By system calls of its own, each line at once: other threads and children write here too.
static void record(const char* what, const char* path, const char* to) {
  const int error = errno;
  const char *log = getenv("FATHOM_FILE_LOG"), *root = getenv("FATHOM_FILE_ROOT");
  if (log && root && strncmp(path, root, strlen(root)) == 0) {
    char line[3 * PATH_MAX];
    const int size = snprintf(line, sizeof line, "%d\t%s\t%s%s%s\n", (int)getpid(), what, path,
                              to ? "\t" : "", to ? to : "");
    const long file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT, 0644);
    if (file < 0 || syscall(SYS_write, file, line, (size_t)size) != size) abort();
    syscall(SYS_close, file);
  }
  errno = error;
}

static void record_open(const char* what, int fd) {
  char path[PATH_MAX];
  record(what, path_of_open(fd, path), NULL);
}

static void record_named(const char* what, int folder, const char* name) {
  char path[PATH_MAX];
  record(what, path_of(folder, name, path), NULL);
}

static int opened(int fd, int flags) {
  if (fd >= 0 && (flags & O_ACCMODE) != O_RDONLY)
    record_open(flags & O_CREAT ? "create" : "open", fd);
  if (fd >= 0 && flags & O_TRUNC) record_open("truncate", fd);
  return fd;
}

#define MODE_OF(flags, mode)               \
  mode_t mode = 0;                         \
  if ((flags) & (O_CREAT | __O_TMPFILE)) { \
    va_list more;                          \
    va_start(more, flags);                 \
    mode = va_arg(more, mode_t);           \
    va_end(more);                          \
  }

int open(const char* name, int flags, ...) {
  MODE_OF(flags, mode)
  return opened(REAL(open)(name, flags, mode), flags);
}

int open64(const char* name, int flags, ...) {
  MODE_OF(flags, mode)
  return opened(REAL(open64)(name, flags, mode), flags);
}

int openat(int folder, const char* name, int flags, ...) {
  MODE_OF(flags, mode)
  return opened(REAL(openat)(folder, name, flags, mode), flags);
}

int openat64(int folder, const char* name, int flags, ...) {
  MODE_OF(flags, mode)
  return opened(REAL(openat64)(folder, name, flags, mode), flags);
}

static FILE* opened_stream(FILE* file, const char* mode) {
  if (file && mode[0] != 'r')
    opened(fileno(file), O_WRONLY | O_CREAT | (mode[0] == 'w' ? O_TRUNC : 0));
  return file;
}

FILE* fopen(const char* name, const char* mode) {
  return opened_stream(REAL(fopen)(name, mode), mode);
}

FILE* fopen64(const char* name, const char* mode) {
  return opened_stream(REAL(fopen64)(name, mode), mode);
}

static ssize_t changed(ssize_t result, const char* what, int fd) {
  if (result >= 0) record_open(what, fd);
  return result;
}

ssize_t write(int fd, const void* bytes, size_t size) {
  return changed(REAL(write)(fd, bytes, size), "write", fd);
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  return changed(REAL(writev)(fd, parts, count), "write", fd);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  return changed(REAL(pwrite)(fd, bytes, size, at), "write", fd);
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  return changed(REAL(pwrite64)(fd, bytes, size, at), "write", fd);
}

int ftruncate(int fd, off_t size) {
  return (int)changed(REAL(ftruncate)(fd, size), "truncate", fd);
}

int ftruncate64(int fd, off64_t size) {
  return (int)changed(REAL(ftruncate64)(fd, size), "truncate", fd);
}

int fsync(int fd) { return (int)changed(REAL(fsync)(fd), "sync", fd); }
int fdatasync(int fd) { return (int)changed(REAL(fdatasync)(fd), "sync", fd); }

int close(int fd) {
  record_open("close", fd);
  return REAL(close)(fd);
}

static int renamed(int result, const char* what, int folder, const char* from, int to_folder,
                   const char* to) {
  char path[PATH_MAX], to_path[PATH_MAX];
  if (result == 0) record(what, path_of(folder, from, path), path_of(to_folder, to, to_path));
  return result;
}

int rename(const char* from, const char* to) {
  return renamed(REAL(rename)(from, to), "rename", AT_FDCWD, from, AT_FDCWD, to);
}

int renameat(int folder, const char* from, int to_folder, const char* to) {
  return renamed(REAL(renameat)(folder, from, to_folder, to), "rename", folder, from, to_folder,
                 to);
}

int renameat2(int folder, const char* from, int to_folder, const char* to, unsigned flags) {
  return renamed(REAL(renameat2)(folder, from, to_folder, to, flags),
                 flags & RENAME_EXCHANGE ? "exchange" : "rename", folder, from, to_folder, to);
}

static int named(int result, const char* what, int folder, const char* name) {
  if (result == 0) record_named(what, folder, name);
  return result;
}

int mkdir(const char* name, mode_t mode) {
  return named(REAL(mkdir)(name, mode), "mkdir", AT_FDCWD, name);
}

int mkdirat(int folder, const char* name, mode_t mode) {
  return named(REAL(mkdirat)(folder, name, mode), "mkdir", folder, name);
}

int unlink(const char* name) { return named(REAL(unlink)(name), "remove", AT_FDCWD, name); }
int rmdir(const char* name) { return named(REAL(rmdir)(name), "remove", AT_FDCWD, name); }
int remove(const char* name) { return named(REAL(remove)(name), "remove", AT_FDCWD, name); }

int unlinkat(int folder, const char* name, int flags) {
  return named(REAL(unlinkat)(folder, name, flags), "remove", folder, name);
}
