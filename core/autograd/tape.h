// The ops of a forward pass, each with its derivative. Entries are in execution order, so walking
// them backwards is already a topological order, and the arena's bottom is freed along the way. A
// tape that does not record runs models for evaluation.
//
// The gradient of a variable may be one tensor shared by several variables (the dual stream of
// ResiDual gives the same one to every block); it is added to in place only by its sole owner.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "core/autograd/parameter.h"
#include "core/autograd/profile.h"
#include "core/kernels/dropout.h"
#include "core/tensor/device.h"

namespace fathom::autograd {

using kernels::Kernels;

class Tape;

// A value of the graph: a handle, cheap to copy.
class Var {
 public:
  Var() = default;
  [[nodiscard]] const Tensor& value() const { return node_->value; }
  [[nodiscard]] const Tensor& grad() const { return node_->grad; }  // of a leaf, after backward
  [[nodiscard]] Tape& tape() const { return *node_->tape; }
  [[nodiscard]] bool is_set() const { return node_ != nullptr; }

 private:
  friend class Tape;
  struct Node {
    Tape* tape;
    Tensor value, grad;
    bool needs_grad;
  };
  std::shared_ptr<Node> node_;
};

// How the model runs.
struct Mode {
  bool recording = true;         // keep what backward needs
  bool batch_invariant = false;  // results of a row do not depend on the other rows of the batch
  bool training = true;          // dropout on
  int64_t update = 0;            // of this training step, or of the step the weights are from
  kernels::DropoutStep dropout = {};
  Profile* profile = nullptr;  // gets a span for every op; outlives the tape
};

class Tape {
 public:
  using Backward = std::function<void(const Tensor& dy)>;
  using ReadyHook = std::function<void(const Parameter&)>;

  Tape(Device& device, DType dtype, Mode mode);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  [[nodiscard]] Device& device() const { return device_; }
  [[nodiscard]] Context& context() const { return device_.compute(); }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] DType wide() const { return wide_of(dtype_); }
  [[nodiscard]] const Mode& mode() const { return mode_; }
  [[nodiscard]] bool is_recording() const { return mode_.recording; }

  // Memory: `keep` lasts until backward is past the entry recorded next, `scratch` as long as its
  // handles.
  [[nodiscard]] Tensor keep(int64_t rows, int64_t cols) { return keep(rows, cols, dtype_); }
  [[nodiscard]] Tensor keep(int64_t rows, int64_t cols, DType dtype);
  [[nodiscard]] Tensor scratch(int64_t rows, int64_t cols) { return scratch(rows, cols, dtype_); }
  [[nodiscard]] Tensor scratch(int64_t rows, int64_t cols, DType dtype);
  // keep(), filled from the host.
  [[nodiscard]] Tensor upload(std::span<const int32_t> values);  // (1, n) i32

  // No dropout when the mode says so or p is 0. `site` identifies the dropout within the model.
  [[nodiscard]] kernels::Dropout dropout(uint64_t site, double p, kernels::RowIds rows) const;

  // A leaf whose gradient is computed (tests), or a constant.
  [[nodiscard]] Var leaf(Tensor value);
  [[nodiscard]] Var constant(Tensor value);

  // Wraps the result of op `name`. `parameters`: those whose gradients `backward` accumulates into.
  Var record(const char* name, Tensor value, std::span<const Var> inputs,
             std::span<const Parameter* const> parameters, Backward backward);

  // Runs a part of the model so that only its outputs are kept: backward, where there is one, first
  // runs it again on a tape of its own. `f` is a pure function of its inputs and of parameters,
  // called with kFirst now and with kAgain in backward; the bits are those of f(inputs) called
  // directly. An output may be an input, or not set.
  enum class Run { kFirst, kAgain };
  using Segment = std::function<std::vector<Var>(std::span<const Var> inputs, Run run)>;
  [[nodiscard]] std::vector<Var> recomputed(const char* name, std::span<const Var> inputs,
                                            Segment f);

  // Adds `grad` to what `v` has received so far, in the type of v. For use inside a Backward.
  void accumulate(const Var& v, Tensor grad);

  // Backward through all entries, starting from d(loss)/d(output) = `seed`. Calls `ready` with each
  // parameter when its gradient is final. Consumes the tape. Without a seed `output` must be the
  // loss of an op that includes its own weight (linear_cross_entropy).
  void backward(const Var& output, const Tensor& seed = {}, const ReadyHook& ready = {});

 private:
  struct Entry {
    const char* name;                                     // of the op
    std::vector<std::shared_ptr<Var::Node>> outs;         // none: a parameter becomes ready
    std::function<void(std::span<Tensor> dys)> backward;  // empty: nothing to propagate
    const Parameter* parameter = nullptr;
    Arena::Mark mark = 0;
  };
  Var make(Tensor value, bool needs_grad);
  void push(Entry entry, std::span<const Parameter* const> parameters);
  void undo(const ReadyHook& ready);
  void undo_again(const Segment& f, std::span<const Var> given, std::span<const size_t> made,
                  std::span<Tensor> dys);
  // Index of the first of `in` that is the same variable, else in.size().
  [[nodiscard]] static size_t place_of(const Var& v, std::span<const Var> in);

  Device& device_;
  DType dtype_;
  Mode mode_;
  Arena::Mark start_, last_mark_;
  std::vector<Entry> entries_;
  std::unordered_set<const Parameter*> seen_;
  std::vector<const Parameter*>* collected_ = nullptr;  // those used, while a segment first runs
};

}  // namespace fathom::autograd

namespace fathom {
using autograd::Tape;
using autograd::Var;
}  // namespace fathom
