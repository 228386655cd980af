#include "core/ops/elementwise.h"

namespace fathom::ops {

using autograd::Kernels;

Var add_scaled(const Var& x, const Var& z, double a, double b) {
  require(x.value().same_shape(z.value()), "add_scaled: x is ", x.value(), ", z is ", z.value());
  Tape& tape = x.tape();
  const Tensor y = tape.keep(x.value().rows(), x.value().cols(), x.value().dtype());
  tape.context().run(&Kernels::add_scaled,
                     {.x = x.value(), .z = z.value(), .y = y, .a = a, .b = b});
  const Var inputs[] = {x, z};
  return tape.record("add_scaled", y, inputs, {}, [&tape, x, z, a, b](const Tensor& dy) {
    const auto scaled = [&](double factor) {
      if (factor == 1) return dy;
      Tensor d = tape.scratch(dy.rows(), dy.cols(), dy.dtype());
      tape.context().run(&Kernels::add_scaled, {.x = dy, .z = {}, .y = d, .a = factor});
      return d;
    };
    tape.accumulate(z, scaled(b));
    tape.accumulate(x, scaled(a));
  });
}

Var widened(const Var& x) {
  Tape& tape = x.tape();
  if (x.value().dtype() == tape.wide()) return x;
  const Tensor y = tape.keep(x.value().rows(), x.value().cols(), tape.wide());
  tape.context().run(&Kernels::add_scaled, {.x = x.value(), .z = {}, .y = y});
  return tape.record("widened", y, std::span(&x, 1), {},
                     [&tape, x](const Tensor& dy) { tape.accumulate(x, dy); });
}

Var gelu(const Var& x, const kernels::Dropout& dropout) {
  Tape& tape = x.tape();
  const Tensor y = tape.keep(x.value().rows(), x.value().cols());
  tape.context().run(&Kernels::gelu_forward, {.x = x.value(), .y = y, .dropout = dropout});
  return tape.record("gelu", y, std::span(&x, 1), {}, [&tape, x, dropout](const Tensor& dy) {
    Tensor dx = tape.scratch(dy.rows(), dy.cols());
    tape.context().run(&Kernels::gelu_backward,
                       {.dy = dy, .x = x.value(), .dx = dx, .dropout = dropout});
    tape.accumulate(x, std::move(dx));
  });
}

}  // namespace fathom::ops
