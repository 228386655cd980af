#include "core/ops/layer_norm.h"

namespace fathom::ops {
namespace {

using autograd::Kernels;

Var normalise(const Var& x, const Var* o, const Parameter& gain, const Parameter& bias,
              double eps) {
  const int64_t T = x.value().rows(), C = x.value().cols();
  require(gain.value.cols() == C && bias.value.cols() == C, "layer_norm: ", gain.name, " is ",
          gain.value, " and ", bias.name, " is ", bias.value, ", but x is ", x.value());
  require(o == nullptr || o->value().same_shape(x.value()), "layer_norm: x is ", x.value(),
          ", but o, which is added to it, is ", o == nullptr ? Tensor{} : o->value());

  Tape& tape = x.tape();
  const Tensor sum = o ? tape.keep(T, C, x.value().dtype()) : x.value();  // (T, C)
  const Tensor y = tape.keep(T, C);                                       // (T, C)
  const Tensor mean = tape.keep(1, T, tape.wide());
  const Tensor rstd = tape.keep(1, T, tape.wide());
  tape.context().run(&Kernels::layer_norm_forward, {.x = x.value(),
                                                    .addend = o ? o->value() : Tensor{},
                                                    .gain = gain.value,
                                                    .bias = bias.value,
                                                    .sum = sum,
                                                    .y = y,
                                                    .mean = mean,
                                                    .rstd = rstd,
                                                    .eps = eps});
  const Parameter* parameters[] = {&gain, &bias};
  const Var inputs[] = {x, o ? *o : x};
  return tape.record(
      "layer_norm", y, std::span(inputs, o ? 2u : 1u), parameters,
      [&tape, x, addend = o ? *o : Var{}, &gain, &bias, sum, mean, rstd](const Tensor& dy) {
        Tensor ds = tape.scratch(dy.rows(), dy.cols(), sum.dtype());  // (T, C)
        tape.context().run(&Kernels::layer_norm_backward, {.dy = dy,
                                                           .sum = sum,
                                                           .gain = gain.value,
                                                           .mean = mean,
                                                           .rstd = rstd,
                                                           .ds = ds,
                                                           .dgain = gain.grad,
                                                           .dbias = bias.grad});
        if (addend.is_set()) tape.accumulate(addend, ds);
        tape.accumulate(x, std::move(ds));
      });
}

}  // namespace

Var layer_norm(const Var& x, const Parameter& gain, const Parameter& bias, double eps) {
  return normalise(x, nullptr, gain, bias, eps);
}

Var add_layer_norm(const Var& x, const Var& o, const Parameter& gain, const Parameter& bias,
                   double eps) {
  return normalise(x, &o, gain, bias, eps);
}

}  // namespace fathom::ops
