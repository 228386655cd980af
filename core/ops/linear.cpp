#include "core/ops/linear.h"

namespace fathom::ops {

using autograd::Kernels;

Var linear(const Var& x, const Parameter& w, const Parameter* b, const LinearEpilogue& epilogue) {
  const int64_t T = x.value().rows(), K = x.value().cols(), N = w.value.rows();
  require(w.value.cols() == K, "linear: ", w.name, " is ", w.value, ", but x is ", x.value());
  require(b == nullptr || b->value.cols() == N, "linear: the bias of ", w.name, " is ",
          b == nullptr ? Tensor{} : b->value, ", expected ", N, " entries");

  Tape& tape = x.tape();
  const Tensor y = tape.keep(T, N);  // (T, N)
  tape.context().run(&Kernels::linear_forward, {.x = x.value(),
                                                .w = w.value,
                                                .b = b ? b->value : Tensor{},
                                                .y = y,
                                                .relu = epilogue.relu,
                                                .batch_invariant = tape.mode().batch_invariant,
                                                .dropout = epilogue.dropout});
  const Parameter* parameters[] = {&w, b};
  return tape.record("linear", y, std::span(&x, 1), std::span(parameters, b ? 2u : 1u),
                     [&tape, x, &w, b, y, epilogue](const Tensor& dy) {
                       Tensor dx = tape.scratch(x.value().rows(), x.value().cols());  // (T, K)
                       const bool is_masked = epilogue.relu || epilogue.dropout.is_active();
                       tape.context().run(
                           &Kernels::linear_backward,
                           {.dy = dy,
                            .x = x.value(),
                            .w = w.value,
                            .y = y,
                            .dx = dx,
                            .dw = w.grad,
                            .db = b ? b->grad : Tensor{},
                            .scratch = is_masked ? tape.scratch(dy.rows(), dy.cols()) : Tensor{},
                            .relu = epilogue.relu,
                            .dropout = epilogue.dropout});
                       tape.accumulate(x, std::move(dx));
                     });
}

}  // namespace fathom::ops
