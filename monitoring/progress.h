// Progress of long work: on a terminal one line with a bar, redrawn at most ten times a second and
// cleared at the end; elsewhere (a log file) plain lines: the first, one every ten seconds, the
// last. The caller's text adds what is specific to the work: loss, tokens per second.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <mutex>
#include <string>

namespace fathom::monitoring {

struct ProgressConfig {
  std::string title;                // "train"
  int64_t total = 0;                // steps of the whole work; 0: unknown, no bar and no time left
  int64_t start = 0;                // steps done before (a resume); time left counts from here
  bool is_terminal = false;         // redraw one line, or write plain lines
  bool uses_escapes = true;         // to clear a line on a terminal; or spaces
  std::function<int()> width;       // columns of the terminal, at each redraw; empty: 80
  std::function<double()> seconds;  // monotonic clock; empty: the steady clock
  double plain_interval_seconds = 10;
};

// False where NO_COLOR is set (no-color.org): no escape sequences then, those of the log included.
[[nodiscard]] bool wants_escapes();

// For stderr: terminal or not (TERM=dumb is not), wants_escapes(), its width, the steady clock.
[[nodiscard]] ProgressConfig stderr_progress(std::string title, int64_t total, int64_t start = 0);

class Progress {
 public:
  Progress(std::ostream& out, ProgressConfig config);  // out must outlive the progress
  ~Progress();                                         // finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // done: steps so far, `start` included. Cheap when nothing is due. text is ASCII, short.
  void update(int64_t done, std::string text);
  // Clears the bar, or writes the last plain line if that is not done yet. Later calls do nothing.
  void finish();
  // Clears the bar so that another line can be printed; an update soon redraws it.
  // From any thread.
  void clear();

 private:
  [[nodiscard]] std::string line(int columns) const;
  [[nodiscard]] std::string time_left() const;
  void erase();
  void print();

  std::ostream& out_;
  ProgressConfig config_;
  std::mutex mutex_;
  double began_;      // the time left follows from what was done since then
  int64_t began_at_;  // and from here
  double printed_at_ = 0;
  int64_t done_;
  int64_t printed_done_ = -1;  // -1: nothing printed yet
  size_t drawn_ = 0;           // columns of the bar that is on the terminal
  bool is_finished_ = false;
  std::string text_;
};

// "loss 3.214, lr 5.00e-04, 12.3k tokens/s"
[[nodiscard]] std::string training_text(double loss, double learning_rate,
                                        double tokens_per_second);

}  // namespace fathom::monitoring
