#include "core/ops/embedding.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/random_tensor.h"
#include "tests/support/tolerance.h"

namespace fathom::ops {
namespace {

// As a tensor of `dtype`.
Tensor sinusoid_table(int64_t count, int64_t C, DType dtype) {
  const std::vector<double> values = sinusoids(count, C);
  return support::filled(count, C, dtype,
                         [&](auto r, auto c) { return values[size_t(r * C + c)]; });
}

// fairseq's SinusoidalPositionalEmbedding: padding index 1, so that positions start at 2.
TEST(Sinusoids, AreFairseqs) {
  const Tensor table = sinusoid_table(5, 8, DType::kF64);

  for (int64_t p = 0; p < 5; ++p) {
    for (int64_t i = 0; i < 4; ++i) {
      const double angle = double(p + 2) * std::pow(10000.0, -double(i) / 3);
      EXPECT_NEAR(table.row<double>(p)[i], std::sin(angle), 1e-12);
      EXPECT_NEAR(table.row<double>(p)[4 + i], std::cos(angle), 1e-12);
    }
  }
  EXPECT_NEAR(table.row<double>(0)[0], 0.9092974268256817, 1e-15);   // sin 2
  EXPECT_NEAR(table.row<double>(1)[4], -0.9899924966004454, 1e-15);  // cos 3
}

TEST(Sinusoids, RefuseAWidthThatDoesNotPair) {
  for (const int64_t C : {2, 5})
    EXPECT_TRUE(
        support::throws_with<InvalidArgument>(join("must be even and at least 4, got ", C),
                                              [&] { (void)sinusoid_table(3, C, DType::kF32); }));
}

struct Table {
  std::unique_ptr<Device> home = tensor::make_reference_device();
  ParameterStore store;
  const Parameter* table;
  Tensor gradient;
  Table(int64_t V, int64_t C, DType dtype)
      : store(*home, dtype), table(&store.add("embedding.weight", Role::kEmbedding, {V, C}, C, V)) {
    store.freeze();
    for (int64_t i = 0; i < V * C; ++i)
      visit_float(dtype, [&]<class T>() { table->value.data<T>()[i] = T(double(i)); });
    gradient = support::zeros(1, store.size(), dtype);
    store.bind_gradients(gradient);
  }
};

TEST(Embedding, ScalesTheTableAndAddsThePosition) {
  for (const bool is_cpu : {false, true}) {
    const auto device = is_cpu ? tensor::make_cpu_device(1) : tensor::make_reference_device();
    Table t(3, 4, DType::kF32);
    const Tensor sinusoids =
        support::filled(2, 4, DType::kF32, [](auto r, auto c) { return 100 * r + 10 * c; });
    const Tensor tokens = support::integers({2, 0, 1}), positions = support::integers({0, 1, 0});
    Tape tape(*device, DType::kF32, {});

    const Var y = embedding(tape, *t.table, sinusoids, tokens, positions, 2);

    const std::vector<float> want = {16, 28, 40, 52, 100, 112, 124, 136, 8, 20, 32, 44};
    for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(y.value().data<float>()[i], want[i]) << i;
  }
}

TEST(Embedding, AddsUpTheGradientsOfARepeatedToken) {
  for (const bool is_cpu : {false, true}) {
    const auto device = is_cpu ? tensor::make_cpu_device(2) : tensor::make_reference_device();
    const int64_t C = 132;  // more than one task of columns
    Table t(3, C, DType::kF32);
    t.gradient.data<float>()[0] = 1000;
    const Tensor tokens = support::integers({2, 0, 2, 2}),
                 positions = support::integers({0, 1, 2, 3});
    const Tensor dy =
        support::filled(4, C, DType::kF32, [](auto r, auto c) { return (1 << r) + 16 * c; });
    Tape tape(*device, DType::kF32, {});

    const Var y =
        embedding(tape, *t.table, sinusoid_table(4, C, DType::kF32), tokens, positions, 2);
    tape.backward(y, dy);

    for (int64_t c = 0; c < C; ++c) {
      EXPECT_EQ(t.table->grad.row<float>(0)[c], float(2 * (2 + 16 * c)) + (c == 0 ? 1000 : 0));
      EXPECT_EQ(t.table->grad.row<float>(1)[c], 0);
      EXPECT_EQ(t.table->grad.row<float>(2)[c], float(2 * (1 + 4 + 8 + 3 * 16 * c)));
    }
  }
}

TEST(Embedding, RefusesShapesThatDoNotFit) {
  const auto device = tensor::make_reference_device();
  Table t(3, 4, DType::kF64);
  const Tensor table = sinusoid_table(5, 4, DType::kF64);
  Tape tape(*device, DType::kF64, {});
  const auto refuses = [&](const std::string& part, std::vector<int32_t> tokens,
                           std::vector<int32_t> positions, const Tensor& s) {
    return support::throws_with<InvalidArgument>(part, [&] {
      (void)embedding(tape, *t.table, s, support::integers(tokens), support::integers(positions),
                      1);
    });
  };

  EXPECT_TRUE(refuses("embedding: 2 tokens, but 1 positions", {0, 1}, {0}, table));
  EXPECT_TRUE(refuses("embedding: sinusoids are f64 (5, 6), the width is 4", {0}, {0},
                      sinusoid_table(5, 6, DType::kF64)));
}

}  // namespace
}  // namespace fathom::ops
