#include "core/ops/cross_entropy.h"

namespace fathom::ops {

TokenLosses linear_cross_entropy(const Var& x, const Parameter& w, const Tensor& targets,
                                 double smoothing, double weight) {
  const int64_t T = x.value().rows(), C = x.value().cols(), V = w.value.rows();
  require(w.value.cols() == C, "linear_cross_entropy: ", w.name, " is ", w.value, ", but x is ",
          x.value());
  require(targets.numel() == T, "linear_cross_entropy: ", targets.numel(), " targets for ", T,
          " rows");

  Tape& tape = x.tape();
  TokenLosses out;
  out.nll = tape.keep(1, T, tape.wide());
  out.smooth = tape.keep(1, T, tape.wide());
  const bool wants_grad = tape.is_recording();
  // Handed over as the gradient of x, so it lives at the arena's top from the start.
  Tensor dx = wants_grad ? tape.scratch(T, C) : Tensor{};
  tape.context().run(&kernels::Kernels::cross_entropy,
                     {.x = x.value(),
                      .w = w.value,
                      .slice = tape.scratch(kernels::kCrossEntropyRows, V, tape.wide()),
                      .targets = targets,
                      .nll = out.nll,
                      .loss = out.smooth,
                      .smoothing = smoothing,
                      .weight = weight,
                      .dx = dx,
                      .dw = wants_grad ? w.grad : Tensor{},
                      .batch_invariant = tape.mode().batch_invariant});
  const Parameter* parameters[] = {&w};
  out.loss = tape.record(
      "linear_cross_entropy", out.smooth, std::span(&x, 1), parameters,
      [&tape, x, dx = std::move(dx)](const Tensor&) mutable { tape.accumulate(x, std::move(dx)); });
  return out;
}

}  // namespace fathom::ops
