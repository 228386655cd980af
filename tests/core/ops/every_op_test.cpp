// Claims that hold for every op: its derivative, the cpu device against the reference, bf16 against
// f32, threads, the other rows of the batch, NaN.
#include <limits>

#include <gtest/gtest.h>

#include "tests/core/ops/op_cases.h"
#include "tests/support/tolerance.h"

namespace fathom::ops {
namespace {

using support::Rows;

constexpr kernels::DropoutStep kStep = {.seed = 11, .step = 5};

class EveryOp : public ::testing::TestWithParam<NamedOp> {};

// Of all gradients together.
double gradient_norm(const OpResult& result) {
  double squares = 0;
  for (size_t i = 1; i < result.tensors.size(); ++i) {
    const double norm = support::norm_of(result.tensors[i]);
    squares += norm * norm;
  }
  return std::sqrt(squares);
}

TEST_P(EveryOp, GradientMatchesCentralDifferences) {
  for (const OpShape shape : {OpShape{.heads = 3, .head_width = 2, .out = 5},
                              OpShape{.heads = 1, .head_width = 4, .out = 1},
                              OpShape{.heads = 2, .head_width = 5, .out = 9}}) {
    const auto c = make_case(GetParam(), Rows({3, 1, 5}), shape, DType::kF64);

    EXPECT_TRUE(support::loss_gradients_match(c->loss(), c->inputs, &c->store, {.dropout = kStep}));
  }
}

// Products have their own, tighter tests; this one sees every op, every gradient and every tail.
TEST_P(EveryOp, OnTheCpuEqualsTheReference) {
  const auto reference = tensor::make_reference_device();
  const auto cpu = tensor::make_cpu_device(1);
  struct Size {
    std::vector<int32_t> lengths;
    OpShape shape;
  };
  const std::vector<Size> sizes = {
      {{1}, {.heads = 4, .head_width = 5, .out = 33}},
      {{20, 11}, {.heads = 11, .head_width = 3, .out = 20}},
      {{1, 31, 1}, {.heads = 2, .head_width = 10, .out = 1000}},
      {{33}, {.heads = 4, .head_width = 250, .out = 33}},
      {{200, 33, 31, 1}, {.heads = 3, .head_width = 8, .out = 31}},
      {{31, 200}, {.heads = 2, .head_width = 16, .out = 33}},
      {{1, 33, 70}, {.heads = 1, .head_width = 64, .out = 130}},
      {std::vector<int32_t>(125, 8), {.heads = 4, .head_width = 5, .out = 33}},  // 1000 rows
  };
  for (const Size& size : sizes) {
    const auto c = make_case(GetParam(), Rows(size.lengths), size.shape, DType::kF32);
    const autograd::Mode mode = {.dropout = kStep};

    const OpResult want = run_case(*c, *reference, mode), got = run_case(*c, *cpu, mode);

    for (size_t i = 0; i < want.tensors.size(); ++i)
      EXPECT_TRUE(support::is_gradient_near(got.tensors[i], want.tensors[i], gradient_norm(want)))
          << want.names[i] << ", " << c->rows.count() << " rows, width " << size.shape.width();
  }
}

// From the same inputs, weights and seed, all of them numbers that bf16 holds: what differs is how
// results are rounded. Gradients of parameters, statistics and losses are f32 in both.
TEST_P(EveryOp, InBf16EqualsF32) {
  const auto reference = tensor::make_reference_device();
  struct Size {
    std::vector<int32_t> lengths;
    OpShape shape;
  };
  const std::vector<Size> sizes = {
      {{1}, {.heads = 4, .head_width = 5, .out = 33}},
      {{20, 11}, {.heads = 11, .head_width = 3, .out = 20}},
      {{1, 33, 70}, {.heads = 1, .head_width = 64, .out = 130}},
  };
  for (const Size& size : sizes) {
    const auto narrow =
        make_case(GetParam(), Rows(size.lengths), size.shape, DType::kBF16, Numbers::kBf16);
    const auto wide =
        make_case(GetParam(), Rows(size.lengths), size.shape, DType::kF32, Numbers::kBf16);
    const autograd::Mode mode = {.dropout = kStep};

    const OpResult want = run_case(*wide, *reference, mode),
                   got = run_case(*narrow, *reference, mode);

    const double relative = support::tolerance(DType::kBF16).relative;
    ASSERT_EQ(got.names, want.names);
    for (size_t i = 0; i < want.tensors.size(); ++i) {
      const bool is_output = i == 0;
      EXPECT_TRUE(support::is_norm_near(got.tensors[i], want.tensors[i],
                                        is_output ? relative : 2 * relative,
                                        is_output ? 0 : relative / 1000 * gradient_norm(want)))
          << want.names[i] << ", " << wide->rows.count() << " rows, width " << size.shape.width();
      const bool is_narrow = (is_output && !narrow->weight) || want.names[i] == "d input";
      EXPECT_EQ(got.tensors[i].dtype(), is_narrow ? DType::kBF16 : DType::kF32) << want.names[i];
    }
  }
}

TEST_P(EveryOp, GivesTheSameBitsOnAnyNumberOfThreads) {
  for (const std::vector<int32_t>& lengths :
       {std::vector<int32_t>{33, 1, 31, 65}, std::vector<int32_t>(90, 11)}) {
    const auto c = make_case(GetParam(), Rows(lengths), {.heads = 4, .head_width = 40, .out = 130},
                             DType::kF32);
    const auto one = tensor::make_cpu_device(1);
    const OpResult want = run_case(*c, *one, {.dropout = kStep});
    for (const int threads : {2, 3}) {
      const auto many = tensor::make_cpu_device(threads);

      const OpResult got = run_case(*c, *many, {.dropout = kStep});

      for (size_t i = 0; i < want.tensors.size(); ++i)
        EXPECT_TRUE(support::has_same_bits(got.tensors[i], want.tensors[i]))
            << want.names[i] << " on " << threads << " threads";
    }
  }
}

// Masks included: dropout knows sentence and position, not the row.
TEST_P(EveryOp, BatchInvariantIgnoresTheOtherRows) {
  const std::vector<int32_t> lengths = {3, 40, 1, 33, 70, 9};
  for (const OpShape shape : {OpShape{.heads = 3, .head_width = 11, .out = 21},
                              OpShape{.heads = 4, .head_width = 64, .out = 130}}) {
    const auto device = tensor::make_cpu_device(2);
    const autograd::Mode mode = {.recording = false, .batch_invariant = true, .dropout = kStep};
    const auto together = make_case(GetParam(), Rows(lengths), shape, DType::kF32);
    const OpResult all = run_case(*together, *device, mode);
    for (size_t i = 0; i < lengths.size(); ++i) {
      const int32_t sentence = together->rows.sentence[size_t(together->rows.segments.begin[i])];
      const auto alone = make_case(GetParam(), Rows({lengths[i]}, {sentence}), shape, DType::kF32);
      const auto begin = together->rows.segments.begin[i];

      const OpResult one = run_case(*alone, *device, mode);

      EXPECT_TRUE(
          support::has_same_bits(one.tensors[0], all.tensors[0].row_range(begin, lengths[i])))
          << "sentence of " << lengths[i] << " tokens at row " << begin << ", width "
          << shape.width();
    }
  }
}

TEST_P(EveryOp, CarriesNanFromInputToOutput) {
  for (const bool is_cpu : {false, true}) {
    const auto device = is_cpu ? tensor::make_cpu_device(1) : tensor::make_reference_device();
    const auto c =
        make_case(GetParam(), Rows({5, 9}), {.heads = 3, .head_width = 4, .out = 17}, DType::kF32);
    for (const Tensor& input : c->inputs) {
      const int64_t row = 6;  // its column 0 is a query where it is an attention's input
      const float original = input.row<float>(row)[0];
      input.row<float>(row)[0] = std::numeric_limits<float>::quiet_NaN();

      const OpResult out = run_case(*c, *device, {.recording = false, .training = false});

      input.row<float>(row)[0] = original;
      bool is_seen = false;
      for (int64_t i = 0; i < out.tensors[0].numel(); ++i)
        is_seen = is_seen || std::isnan(out.tensors[0].data<float>()[i]);
      EXPECT_TRUE(is_seen) << device->name();
    }
    for (const auto& p : c->store.all()) {
      for (int64_t i = 0; i < p->numel(); ++i)
        p->value.data<float>()[i] = std::numeric_limits<float>::quiet_NaN();

      const OpResult out = run_case(*c, *device, {.recording = false, .training = false});

      for (int64_t i = 0; i < out.tensors[0].numel(); ++i)
        ASSERT_TRUE(std::isnan(out.tensors[0].data<float>()[i])) << device->name() << p->name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryOp, ::testing::ValuesIn(op_cases()),
                         [](const auto& op) { return op.param.name; });

}  // namespace
}  // namespace fathom::ops
