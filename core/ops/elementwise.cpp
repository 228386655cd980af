#include "core/ops/elementwise.h"

namespace fathom::ops {

Var add_scaled(const Var& x, const Var& z, double a, double b) {
  require(x.value().same_shape(z.value()), "add_scaled: x is ", x.value(), ", z is ", z.value());
  Tape& tape = x.tape();
  const Tensor y = tape.keep(x.value().rows(), x.value().cols());
  tape.kernels().add_scaled(tape.pool(), {.x = x.value(), .z = z.value(), .y = y, .a = a, .b = b});
  const Var inputs[] = {x, z};
  return tape.record(y, inputs, {}, [&tape, x, z, a, b](const Tensor& dy) {
    const auto scaled = [&](double factor) {
      if (factor == 1) return dy;
      Tensor d = tape.scratch(dy.rows(), dy.cols());
      tape.kernels().add_scaled(tape.pool(), {.x = dy, .z = dy, .y = d, .a = factor, .b = 0});
      return d;
    };
    tape.accumulate(z, scaled(b));
    tape.accumulate(x, scaled(a));
  });
}

Var gelu(const Var& x, kernels::Dropout dropout) {
  Tape& tape = x.tape();
  const Tensor y = tape.keep(x.value().rows(), x.value().cols());
  tape.kernels().gelu_forward(tape.pool(), {.x = x.value(), .y = y, .dropout = dropout});
  return tape.record(y, std::span(&x, 1), {}, [&tape, x, dropout](const Tensor& dy) {
    Tensor dx = tape.scratch(dy.rows(), dy.cols());
    tape.kernels().gelu_backward(tape.pool(),
                                 {.dy = dy, .x = x.value(), .dx = dx, .dropout = dropout});
    tape.accumulate(x, std::move(dx));
  });
}

}  // namespace fathom::ops
