// See thread_calls.h. Preloaded, the environment variables FATHOM_FAILING_THREAD and
// FATHOM_MOST_THREADS set the limit, and the file FATHOM_THREAD_LOG gets a line for each refusal.
#define _GNU_SOURCE
#include "tests/support/thread_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int started, running, refused;
static int limit_failing = 0, limit_most = -1;

void limit_threads(int failing, int most) {
  limit_failing = failing;
  limit_most = most;
  started = 0;
  running = 0;
  refused = 0;
}

int refused_threads(void) { return refused; }

__attribute__((constructor)) static void read_environment(void) {
  const char *failing = getenv("FATHOM_FAILING_THREAD"), *most = getenv("FATHOM_MOST_THREADS");
  limit_threads(failing ? atoi(failing) : 0, most ? atoi(most) : -1);
}

struct start {
  void* (*run)(void*);
  void* argument;
};

static void* counted(void* memory) {
  const struct start start = *(struct start*)memory;
  free(memory);
  void* result = start.run(start.argument);
  --running;
  return result;
}

static int refuse(void) {
  ++refused;
  const char* path = getenv("FATHOM_THREAD_LOG");
  const int log = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
  if (log < 0) return EAGAIN;
  if (write(log, "refused\n", 8) != 8) abort();
  close(log);
  return EAGAIN;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  static __typeof__(&pthread_create) real;
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "pthread_create");
  if (++started == limit_failing) return refuse();
  if (++running > limit_most && limit_most >= 0) {
    --running;
    return refuse();
  }
  struct start* start = malloc(sizeof *start);
  *start = (struct start){run, argument};
  const int error = real(thread, attributes, counted, start);
  if (error != 0) {
    free(start);
    --running;
  }
  return error;
}
