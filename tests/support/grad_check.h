// Compares the tape's gradients with central differences, entry by entry, in f64 on the reference
// device, for inputs and for parameters.
//
// The loss is <w, f(inputs)> with a fixed random w. A plain sum would miss errors where it matters
// most: rows of a softmax, and of a layer_norm without gain, have a constant sum, so the true
// gradient is zero and many wrong formulas pass.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/autograd/tape.h"
#include "tests/support/random_tensor.h"

namespace fathom::support {

struct GradTolerance {
  double step = 1e-5;  // truncation ~ step^2, rounding ~ 1e-16 / step
  double relative = 1e-6;
  double absolute = 1e-9;
};

using Graph = std::function<Var(Tape&, const std::vector<Var>&)>;
// The value of the loss; on a recording tape it also runs backward.
using Loss = std::function<double(Tape&, const std::vector<Var>&)>;

[[nodiscard]] inline Loss projected(Graph f, uint64_t seed = 7) {
  return [f = std::move(f), seed](Tape& tape, const std::vector<Var>& inputs) {
    const Var y = f(tape, inputs);
    const Tensor& value = y.value();
    const Tensor w = normal(value.rows(), value.cols(), value.dtype(), seed);
    double sum = 0;
    for (int64_t i = 0; i < value.numel(); ++i)
      sum += w.data<double>()[i] * value.data<double>()[i];
    if (tape.is_recording()) tape.backward(y, w);
    return sum;
  };
}

// `parameters` may be null; its gradients must be bound. What they hold is overwritten.
[[nodiscard]] inline ::testing::AssertionResult loss_gradients_match(
    const Loss& loss, const std::vector<Tensor>& inputs, ParameterStore* parameters,
    autograd::Mode mode = {}, GradTolerance tolerance = {}) {
  const auto device = tensor::make_reference_device();
  const auto value = [&] {
    autograd::Mode forward = mode;
    forward.recording = false;
    Tape tape(*device, DType::kF64, forward);
    std::vector<Var> constants;
    for (const Tensor& t : inputs) constants.push_back(tape.constant(t));
    return loss(tape, constants);
  };

  struct Slot {
    std::string name;
    Tensor value, grad;
  };
  std::vector<Slot> slots;
  if (parameters) {
    for (const auto& p : parameters->all()) {
      for (int64_t i = 0; i < p->numel(); ++i) p->grad.data<double>()[i] = 0;
      slots.push_back({p->name, p->value, p->grad});
    }
  }
  Tape tape(*device, DType::kF64, mode);
  std::vector<Var> leaves;
  for (const Tensor& t : inputs) leaves.push_back(tape.leaf(t));
  loss(tape, leaves);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].grad().is_empty())
      return ::testing::AssertionFailure() << "input " << i << " received no gradient";
    slots.push_back({"input " + std::to_string(i), inputs[i], leaves[i].grad()});
  }

  for (const Slot& slot : slots) {
    double largest = 0;
    for (int64_t k = 0; k < slot.value.numel(); ++k) {
      double& entry = slot.value.data<double>()[k];
      const double original = entry;
      entry = original + tolerance.step;
      const double above = value();
      entry = original - tolerance.step;
      const double below = value();
      entry = original;

      const double numeric = (above - below) / (2 * tolerance.step);
      const double taped = slot.grad.data<double>()[k];
      const double allowed = tolerance.absolute + tolerance.relative * std::abs(numeric);
      if (!(std::abs(taped - numeric) <= allowed))  // negated, so that NaN fails
        return ::testing::AssertionFailure()
               << slot.name << ", entry " << k << ": tape " << taped << ", differences " << numeric
               << ", allowed " << allowed;
      largest = std::max(largest, std::abs(numeric));
    }
    if (largest == 0)
      return ::testing::AssertionFailure()
             << slot.name << ": all gradients are zero, which proves nothing";
  }
  return ::testing::AssertionSuccess();
}

[[nodiscard]] inline ::testing::AssertionResult gradients_match(
    Graph f, const std::vector<Tensor>& inputs, ParameterStore* parameters = nullptr,
    autograd::Mode mode = {}, GradTolerance tolerance = {}) {
  return loss_gradients_match(projected(std::move(f)), inputs, parameters, mode, tolerance);
}

}  // namespace fathom::support
