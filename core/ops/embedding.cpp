#include "core/ops/embedding.h"

#include <cmath>

namespace fathom::ops {

Tensor make_sinusoids(int64_t count, int64_t C, DType dtype) {
  require(C % 2 == 0 && C >= 4, "sinusoids: the width must be even and at least 4, got ", C);
  Tensor table = autograd::allocate_flat(count * C, dtype).reshaped(count, C);
  const int64_t half = C / 2;
  visit_float(dtype, [&]<class T>() {
    for (int64_t i = 0; i < half; ++i) {
      const double frequency = std::exp(-double(i) * std::log(10000.0) / double(half - 1));
      for (int64_t p = 0; p < count; ++p) {
        table.row<T>(p)[i] = T(std::sin(double(p + 2) * frequency));
        table.row<T>(p)[half + i] = T(std::cos(double(p + 2) * frequency));
      }
    }
  });
  return table;
}

Var embedding(Tape& tape, const Parameter& table, const Tensor& sinusoids,
              std::span<const int32_t> tokens, std::span<const int32_t> positions, double scale,
              kernels::Dropout dropout) {
  const int64_t V = table.value.rows(), C = table.value.cols();
  require(sinusoids.cols() == C, "embedding: sinusoids are ", sinusoids, ", the width is ", C);
  for (const int32_t token : tokens)
    require(token >= 0 && token < V, "embedding: token ", token, " is outside the table of ", V);
  for (const int32_t position : positions)
    require(position >= 0 && position < sinusoids.rows(), "embedding: position ", position,
            " is outside the sinusoids of ", sinusoids.rows());

  const Tensor y = tape.keep(int64_t(tokens.size()), C);
  tape.kernels().embedding_forward(tape.pool(), {.tokens = tokens,
                                                 .positions = positions,
                                                 .table = table.value,
                                                 .sinusoids = sinusoids,
                                                 .y = y,
                                                 .scale = scale,
                                                 .dropout = dropout});
  const Parameter* parameters[] = {&table};
  return tape.record(y, {}, parameters, [&tape, &table, tokens, scale, dropout](const Tensor& dy) {
    tape.kernels().embedding_backward(
        tape.pool(),
        {.tokens = tokens, .dy = dy, .dtable = table.grad, .scale = scale, .dropout = dropout});
  });
}

}  // namespace fathom::ops
