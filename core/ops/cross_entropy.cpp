#include "core/ops/cross_entropy.h"

namespace fathom::ops {

TokenLosses linear_cross_entropy(const Var& x, const Parameter& w, std::span<const int32_t> targets,
                                 double smoothing, double weight) {
  const int64_t T = x.value().rows(), C = x.value().cols(), V = w.value.rows();
  require(w.value.cols() == C, "linear_cross_entropy: ", w.name, " is ", w.value, ", but x is ",
          x.value());
  require(int64_t(targets.size()) == T, "linear_cross_entropy: ", targets.size(), " targets for ",
          T, " rows");
  for (const int32_t t : targets)
    require(t >= 0 && t < V, "linear_cross_entropy: target ", t, " is outside the vocabulary of ",
            V);

  Tape& tape = x.tape();
  TokenLosses out;
  out.nll = tape.keep(1, T);
  out.smooth = tape.keep(1, T);
  const bool wants_grad = tape.is_recording();
  // Handed over as the gradient of x, so it lives at the arena's top from the start.
  Tensor dx = wants_grad ? tape.scratch(T, C) : Tensor{};
  tape.kernels().cross_entropy(tape.pool(), {.x = x.value(),
                                             .w = w.value,
                                             .slice = tape.scratch(kernels::kCrossEntropyRows, V),
                                             .targets = targets,
                                             .nll = out.nll,
                                             .loss = out.smooth,
                                             .smoothing = smoothing,
                                             .weight = weight,
                                             .dx = dx,
                                             .dw = wants_grad ? w.grad : Tensor{},
                                             .fixed_tiles = tape.mode().fixed_tiles});
  const Parameter* parameters[] = {&w};
  out.loss = tape.record(
      out.smooth, std::span(&x, 1), parameters,
      [&tape, x, dx = std::move(dx)](const Tensor&) mutable { tape.accumulate(x, std::move(dx)); });
  return out;
}

}  // namespace fathom::ops
