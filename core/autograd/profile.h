// Where a step's time goes, op by op, from events of the compute context. Spans are opened while
// work is queued and read when it is done, so profiling waits for nothing.
#pragma once

#include <string>
#include <vector>

#include "core/tensor/device.h"

namespace fathom::autograd {

enum class Phase { kForward, kBackward, kUpdate };
[[nodiscard]] const char* to_string(Phase phase);

class Profile {
 public:
  explicit Profile(Context& context) : context_(context) { context_.set_meter(&cost_); }
  ~Profile() { context_.set_meter(nullptr); }
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // What is queued between begin() and the end() after it is one span of the op `name`; the span of
  // a further end() starts at the previous one.
  void begin();
  void end(const char* name, Phase phase);

  // A span, in seconds since the first begin().
  struct Span {
    const char* name;
    Phase phase;
    double begin, end;
    kernels::Cost cost;
  };
  // All of them, once the context has passed the last. DeviceError before.
  [[nodiscard]] std::vector<Span> spans() const;

 private:
  struct Mark {
    const char* name;
    Phase phase;
    tensor::Event begin, end;
    kernels::Cost cost;
  };
  Context& context_;
  tensor::Event first_, last_;
  std::vector<Mark> marks_;
  kernels::Cost cost_;
};

}  // namespace fathom::autograd
