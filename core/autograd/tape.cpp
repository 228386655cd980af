#include "core/autograd/tape.h"

#include <algorithm>

namespace fathom::autograd {

Tape::Tape(Device& device, DType dtype, Mode mode)
    : device_(device),
      dtype_(dtype),
      mode_(mode),
      start_(device.arena().mark()),
      last_mark_(start_) {
  device.check_supports(dtype);
  if (mode_.profile != nullptr) mode_.profile->begin();
}

Tape::~Tape() {
  entries_.clear();
  device_.arena().rewind(start_);
}

Tensor Tape::keep(int64_t rows, int64_t cols, DType dtype) {
  return device_.arena().bottom(rows, cols, dtype);
}
Tensor Tape::scratch(int64_t rows, int64_t cols, DType dtype) {
  return device_.arena().top(rows, cols, dtype);
}

Tensor Tape::upload(std::span<const int32_t> values) {
  const Tensor out = keep(1, int64_t(values.size()), DType::kI32);
  context().upload(out, values);
  return out;
}

kernels::Dropout Tape::dropout(uint64_t site, double p, kernels::RowIds rows) const {
  if (!mode_.training || p == 0) return {};
  return mode_.dropout.at(site, p, rows);
}

Var Tape::make(Tensor value, bool needs_grad) {
  Var v;
  v.node_ = std::make_shared<Var::Node>(Var::Node{this, std::move(value), {}, needs_grad});
  return v;
}

Var Tape::leaf(Tensor value) { return make(std::move(value), true); }
Var Tape::constant(Tensor value) { return make(std::move(value), false); }

Var Tape::record(const char* name, Tensor value, std::span<const Var> inputs,
                 std::span<const Parameter* const> parameters, Backward backward) {
  if (mode_.profile != nullptr) mode_.profile->end(name, Phase::kForward);
  const bool needs_grad =
      mode_.recording &&
      (!parameters.empty() ||
       std::any_of(inputs.begin(), inputs.end(), [](const Var& v) { return v.node_->needs_grad; }));
  Var out = make(std::move(value), needs_grad);
  if (!needs_grad) return out;
  // A parameter gets its entry before its first use; backwards that is after its last gradient
  // arrived, however often it was used.
  for (const Parameter* p : parameters) {
    if (!seen_.insert(p).second) continue;
    entries_.push_back(
        {.name = name, .out = nullptr, .backward = {}, .parameter = p, .mark = last_mark_});
  }
  entries_.push_back({.name = name,
                      .out = out.node_,
                      .backward = std::move(backward),
                      .parameter = nullptr,
                      .mark = last_mark_});
  last_mark_ = device_.arena().mark();
  return out;
}

void Tape::accumulate(const Var& v, Tensor grad) {
  Var::Node& node = *v.node_;
  if (!node.needs_grad) return;
  require(grad.same_shape(node.value), "accumulate: gradient ", grad, " for a value ", node.value);
  const DType dtype = node.value.dtype();
  if (node.grad.is_empty()) {
    if (grad.dtype() == dtype) {
      node.grad = std::move(grad);
      return;
    }
    node.grad = scratch(grad.rows(), grad.cols(), dtype);
    run(&Kernels::add_scaled, {.x = grad, .z = {}, .y = node.grad});
    return;
  }
  const auto add_to = [&](Tensor target, const Tensor& a, const Tensor& b) {
    run(&Kernels::add_scaled, {.x = a, .z = b, .y = target});
    node.grad = std::move(target);
  };
  if (node.grad.is_sole_owner())
    add_to(node.grad, node.grad, grad);
  else if (grad.is_sole_owner() && grad.dtype() == dtype)
    add_to(grad, node.grad, grad);
  else
    add_to(scratch(grad.rows(), grad.cols(), dtype), node.grad, grad);
}

void Tape::backward(const Var& output, const Tensor& seed, const ReadyHook& ready) {
  if (mode_.profile != nullptr) mode_.profile->begin();
  accumulate(output, seed.is_empty() ? output.value() : seed);
  while (!entries_.empty()) {
    Entry entry = std::move(entries_.back());
    entries_.pop_back();
    if (entry.parameter != nullptr) {
      if (ready) ready(*entry.parameter);
    } else if (!entry.out->grad.is_empty()) {
      // The handle moves out first, so that the rule may find itself its gradient's sole owner.
      const Tensor dy = std::move(entry.out->grad);
      entry.out->grad = {};
      entry.backward(dy);
      if (mode_.profile != nullptr) mode_.profile->end(entry.name, Phase::kBackward);
    }
    entry.backward = {};
    device_.arena().rewind(entry.mark);
  }
  last_mark_ = start_;
}

}  // namespace fathom::autograd
