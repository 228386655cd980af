// Detects that this rank makes no progress: a peer that hangs or was stopped blocks every other
// rank in a collective, and MPI does not report it. Each rank has one watchdog, a thread of its
// own. Time is monotonic, and time in which the watchdog itself did not run (a suspended machine, a
// debugger) does not count. The owner decides what to do about it: report, abort with exit code 7.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace fathom::dist {

class Watchdog {
 public:
  using Duration = std::chrono::duration<double>;  // seconds

  struct Expiry {
    std::string phase;   // the innermost open section, "step" outside of any
    double seconds = 0;  // without progress
    double limit_seconds = 0;
    int64_t step = 0;  // the last one reported
  };

  // Calls `on_expire` at most once, from the watchdog's thread, and stops then; it must not throw.
  // InvalidArgument for a limit of 0 or less, here and below. IoError when its thread cannot start.
  Watchdog(Duration limit, std::function<void(const Expiry&)> on_expire);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();  // waits for a running `on_expire`

  // Restarts the clock. Cheap; from any thread.
  void progress();
  void progress(int64_t step);

  // The limit outside of sections, for example ten times the median step.
  void set_limit(Duration limit);

  // While it exists its limit and name apply: saving and validating may take longer than a step.
  // Entering and leaving count as progress. Sections nest: the last one entered is the first left.
  class [[nodiscard]] Section {
   public:
    Section(Watchdog& watchdog, std::string name, Duration limit);
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;
    ~Section();

   private:
    Watchdog& watchdog_;
  };

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fathom::dist
