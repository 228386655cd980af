// For as long as it exists the system refuses threads: see thread_calls.h.
#pragma once

#include "tests/support/thread_calls.h"

namespace fathom::support {

class ThreadLimit {
 public:
  // The `n`-th from now on cannot be started.
  static ThreadLimit failing(int n) { return ThreadLimit(n, -1); }
  // Not more than `n` at the same time.
  static ThreadLimit most(int n) { return ThreadLimit(0, n); }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;
  ~ThreadLimit() { limit_threads(0, -1); }

 private:
  ThreadLimit(int failing, int most) { limit_threads(failing, most); }
};

}  // namespace fathom::support
