#include "core/ops/weighted.h"

#include <vector>

#include "core/ops/elementwise.h"

namespace fathom::ops {

using autograd::Kernels;

Var weighted_sum(std::span<const Var> x, const Parameter& w, int64_t first) {
  require(!x.empty() && first >= 0 && first + int64_t(x.size()) <= w.numel(),
          "weighted_sum: ", x.size(), " streams from entry ", first, " of ", w.name, ", which has ",
          w.numel());
  for (const Var& v : x)
    require(v.value().same_shape(x[0].value()), "weighted_sum: streams are ", x[0].value(), " and ",
            v.value());
  Tape& tape = x[0].tape();
  const Tensor y = tape.keep(x[0].value().rows(), x[0].value().cols(), x[0].value().dtype());
  for (size_t j = 0; j < x.size(); ++j)
    tape.context().run(&Kernels::add_weighted, {.x = x[j].value(),
                                                .weights = w.value,
                                                .y = y,
                                                .index = first + int64_t(j),
                                                .accumulate = j > 0});
  const Parameter* parameters[] = {&w};
  const std::vector<Var> inputs(x.begin(), x.end());
  // y = sum_j w_j x_j:   dx_j = w_j dy,   dw_j += <dy, x_j>
  return tape.record(
      "weighted_sum", y, inputs, parameters, [&tape, inputs, &w, first](const Tensor& dy) {
        for (size_t j = 0; j < inputs.size(); ++j) {
          const int64_t index = first + int64_t(j);
          tape.context().run(
              &Kernels::weight_gradient,
              {.dy = dy, .x = inputs[j].value(), .dweights = w.grad, .index = index});
          Tensor dx = tape.scratch(dy.rows(), dy.cols(), inputs[j].value().dtype());
          tape.context().run(
              &Kernels::add_weighted,
              {.x = dy, .weights = w.value, .y = dx, .index = index, .accumulate = false});
          tape.accumulate(inputs[j], std::move(dx));
        }
      });
}

Var sum(std::span<const Var> x) {
  require(!x.empty(), "sum: no terms");
  Var y = x[0];
  for (const Var& term : x.subspan(1)) y = add_scaled(y, term);
  return y;
}

Var scale_columns(const Var& x, const Parameter& g) {
  require(g.numel() == x.value().cols(), "scale_columns: ", g.name, " has ", g.numel(),
          " entries, but x is ", x.value());
  Tape& tape = x.tape();
  const Tensor y = tape.keep(x.value().rows(), x.value().cols(), x.value().dtype());
  tape.context().run(&Kernels::scale_columns, {.x = x.value(), .gain = g.value, .y = y});
  const Parameter* parameters[] = {&g};
  return tape.record(
      "scale_columns", y, std::span(&x, 1), parameters, [&tape, x, &g](const Tensor& dy) {
        Tensor dx = tape.scratch(dy.rows(), dy.cols(), x.value().dtype());
        tape.context().run(&Kernels::scale_columns_backward,
                           {.dy = dy, .x = x.value(), .gain = g.value, .dx = dx, .dgain = g.grad});
        tape.accumulate(x, std::move(dx));
      });
}

}  // namespace fathom::ops
