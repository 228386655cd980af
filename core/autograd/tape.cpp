#include "core/autograd/tape.h"

#include <algorithm>
#include <utility>

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
  Tensor out = keep(1, int64_t(values.size()), DType::kI32);
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
  if (collected_ != nullptr)
    collected_->insert(collected_->end(), parameters.begin(), parameters.end());
  const bool needs_grad =
      mode_.recording &&
      (!parameters.empty() ||
       std::any_of(inputs.begin(), inputs.end(), [](const Var& v) { return v.node_->needs_grad; }));
  Var out = make(std::move(value), needs_grad);
  if (!needs_grad) return out;
  push({.name = name,
        .outs = {out.node_},
        .backward = [rule = std::move(backward)](std::span<Tensor> dys) { rule(dys[0]); }},
       parameters);
  return out;
}

// A parameter gets its entry before its first use; backward reaches that after the parameter's last
// gradient, however often it was used.
void Tape::push(Entry entry, std::span<const Parameter* const> parameters) {
  for (const Parameter* p : parameters)
    if (seen_.insert(p).second)
      entries_.push_back(
          {.name = entry.name, .outs = {}, .backward = {}, .parameter = p, .mark = last_mark_});
  entry.mark = last_mark_;
  entries_.push_back(std::move(entry));
  last_mark_ = device_.arena().mark();
}

size_t Tape::place_of(const Var& v, std::span<const Var> in) {
  const auto same = [&v](const Var& other) { return other.node_ == v.node_; };
  return size_t(std::find_if(in.begin(), in.end(), same) - in.begin());
}

std::vector<Var> Tape::recomputed(const char* name, std::span<const Var> inputs, Segment f) {
  if (collected_ != nullptr) return f(inputs, Run::kFirst);  // within another's first run
  // Forward without a record. The outputs move to the arena's top, everything else is freed, and
  // they return to the bottom. An output that is an input, or given twice, needs no copy.
  const Arena::Mark mark = device_.arena().mark();
  std::vector<const Parameter*> parameters;
  const bool was_recording = std::exchange(mode_.recording, false);
  collected_ = &parameters;
  std::vector<Var> outputs = f(inputs, Run::kFirst);
  collected_ = nullptr;
  mode_.recording = was_recording;
  struct Made {
    size_t place;  // in the outputs
    Tensor copy;
  };
  std::vector<Made> made;
  // For each output the index of the first that is the same variable.
  std::vector<size_t> first(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    first[i] = place_of(outputs[i], std::span(outputs).first(i + 1));
    if (first[i] < i || !outputs[i].is_set() || place_of(outputs[i], inputs) < inputs.size())
      continue;
    const Tensor& value = outputs[i].value();
    made.push_back({.place = i, .copy = scratch(value.rows(), value.cols(), value.dtype())});
    context().copy(made.back().copy, value);
  }
  device_.arena().rewind(mark);

  Entry entry{.name = name, .outs = {}, .backward = {}};
  std::vector<size_t> places;
  for (const Made& m : made) {
    const Tensor value = keep(m.copy.rows(), m.copy.cols(), m.copy.dtype());
    context().copy(value, m.copy);
    outputs[m.place] = make(value, was_recording);
    entry.outs.push_back(outputs[m.place].node_);
    places.push_back(m.place);
  }
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = outputs[first[i]];
  if (!was_recording) return outputs;
  entry.backward = [this, f = std::move(f), places,
                    given = std::vector<Var>(inputs.begin(), inputs.end())](std::span<Tensor> dys) {
    undo_again(f, given, places, dys);
  };
  push(std::move(entry), parameters);
  return outputs;
}

// The gradients that the inputs have received so far are added to further, in the order of a run
// without segments. An input that is given twice is one leaf.
void Tape::undo_again(const Segment& f, std::span<const Var> given, std::span<const size_t> made,
                      std::span<Tensor> dys) {
  Tape again(device_, dtype_, mode_);
  std::vector<Var> leaves;
  for (size_t i = 0; i < given.size(); ++i) {
    const size_t first = place_of(given[i], given);
    if (first < i) {
      leaves.push_back(leaves[first]);
      continue;
    }
    Var::Node& node = *given[i].node_;
    leaves.push_back(again.make(node.value, node.needs_grad));
    leaves.back().node_->grad = std::exchange(node.grad, {});
  }
  {
    const std::vector<Var> results = f(leaves, Run::kAgain);
    for (size_t i = 0; i < made.size(); ++i)
      if (!dys[i].is_empty()) again.accumulate(results[made[i]], std::move(dys[i]));
  }
  again.undo({});
  for (size_t i = 0; i < given.size(); ++i)
    if (!leaves[i].node_->grad.is_empty())
      given[i].node_->grad = std::exchange(leaves[i].node_->grad, {});
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
    context().run(&Kernels::add_scaled, {.x = grad, .z = {}, .y = node.grad});
    return;
  }
  const auto add_to = [&](Tensor target, const Tensor& a, const Tensor& b) {
    context().run(&Kernels::add_scaled, {.x = a, .z = b, .y = target});
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
  undo(ready);
}

void Tape::undo(const ReadyHook& ready) {
  while (!entries_.empty()) {
    Entry entry = std::move(entries_.back());
    entries_.pop_back();
    if (entry.parameter != nullptr) {
      if (ready) ready(*entry.parameter);
    } else {
      // The handles move out first, so that the derivative can be the gradient's sole owner.
      std::vector<Tensor> dys;
      bool has_influence = false;
      for (const auto& out : entry.outs) {
        dys.push_back(std::exchange(out->grad, {}));
        has_influence = has_influence || !dys.back().is_empty();
      }
      if (has_influence) {
        entry.backward(dys);
        if (mode_.profile != nullptr) mode_.profile->end(entry.name, Phase::kBackward);
      }
    }
    entry.backward = {};
    device_.arena().rewind(entry.mark);
  }
  last_mark_ = start_;
}

}  // namespace fathom::autograd
