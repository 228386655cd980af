#include "core/ops/embedding.h"

#include <cmath>

namespace fathom::ops {

using autograd::Kernels;

std::vector<double> sinusoids(int64_t count, int64_t C) {
  require(C % 2 == 0 && C >= 4, "sinusoids: the width must be even and at least 4, got ", C);
  std::vector<double> table(size_t(count * C));
  const int64_t half = C / 2;
  for (int64_t i = 0; i < half; ++i) {
    const double frequency = std::exp(-double(i) * std::log(10000.0) / double(half - 1));
    for (int64_t p = 0; p < count; ++p) {
      table[size_t(p * C + i)] = std::sin(double(p + 2) * frequency);
      table[size_t(p * C + half + i)] = std::cos(double(p + 2) * frequency);
    }
  }
  return table;
}

Var embedding(Tape& tape, const Parameter& table, const Tensor& sinusoids, const Tensor& tokens,
              const Tensor& positions, double scale, const kernels::Dropout& dropout) {
  const int64_t C = table.value.cols();
  require(sinusoids.cols() == C, "embedding: sinusoids are ", sinusoids, ", the width is ", C);
  require(tokens.numel() == positions.numel(), "embedding: ", tokens.numel(), " tokens, but ",
          positions.numel(), " positions");
  const Tensor y = tape.keep(tokens.numel(), C);
  tape.context().run(&Kernels::embedding_forward, {.tokens = tokens,
                                                   .positions = positions,
                                                   .table = table.value,
                                                   .sinusoids = sinusoids,
                                                   .y = y,
                                                   .scale = scale,
                                                   .dropout = dropout});
  const Parameter* parameters[] = {&table};
  return tape.record(
      "embedding", y, {}, parameters, [&tape, &table, tokens, scale, dropout](const Tensor& dy) {
        tape.context().run(
            &Kernels::embedding_backward,
            {.tokens = tokens, .dy = dy, .dtable = table.grad, .scale = scale, .dropout = dropout});
      });
}

}  // namespace fathom::ops
