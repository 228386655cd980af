#include "core/autograd/tape.h"

#include <gtest/gtest.h>

#include "core/ops/elementwise.h"
#include "core/ops/layer_norm.h"
#include "core/ops/linear.h"
#include "tests/support/expect_error.h"
#include "tests/support/grad_check.h"
#include "tests/support/tolerance.h"

namespace fathom::autograd {
namespace {

using support::normal;

// Parameters for small graphs: two square weights and a norm.
struct Weights {
  std::unique_ptr<Device> home = tensor::make_reference_device();
  ParameterStore store{*home, DType::kF64};
  const Parameter &w1, &w2, &gain, &bias;
  Tensor gradient;

  explicit Weights(int64_t C = 4)
      : w1(store.add("w1", Role::kQuery, {C, C}, C, C)),
        w2(store.add("w2", Role::kQuery, {C, C}, C, C)),
        gain(store.add("gain", Role::kNormGain, {C})),
        bias(store.add("bias", Role::kNormBias, {C})) {
    store.freeze();
    const Tensor values = normal(1, store.size(), DType::kF64, 5);
    std::memcpy(store.weights().address(), values.address(), size_t(store.size()) * 8);
    gradient = support::zeros(1, store.size(), DType::kF64);
    store.bind_gradients(gradient);
  }
};

// Every node passes the tensor it received to two others, which then receive more.
TEST(Tape, DoesNotCorruptGradientsSharedByADiamond) {
  const auto device = tensor::make_reference_device();
  Tape tape(*device, DType::kF64, {});
  const Var x = tape.leaf(normal(2, 4, DType::kF64, 1)),
            z = tape.leaf(normal(2, 4, DType::kF64, 2));
  const Tensor dy = normal(2, 4, DType::kF64, 3), kept = support::copy_of(dy);

  const Var a = ops::add_scaled(x, z);                      // both receive the same dy
  const Var b = ops::add_scaled(a, x);                      // 2 x + z
  const Var c = ops::add_scaled(a, b);                      // 3 x + 2 z
  const Var y = ops::add_scaled(c, ops::add_scaled(x, c));  // 7 x + 4 z
  tape.backward(y, dy);

  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_DOUBLE_EQ(x.grad().data<double>()[i], 7 * kept.data<double>()[i]);
    EXPECT_DOUBLE_EQ(z.grad().data<double>()[i], 4 * kept.data<double>()[i]);
  }
  EXPECT_TRUE(support::has_same_bits(dy, kept)) << "the seed was written to";
}

TEST(Tape, AddsUpTheGradientsOfAVariableUsedTwiceByOneOp) {
  Weights w;
  const auto twice = [&](Tape&, const std::vector<Var>& in) {
    const Var h = ops::linear(in[0], w.w1, nullptr);
    return ops::linear(ops::add_scaled(h, h, 2, 0.5), w.w1, nullptr);  // w1 twice as well
  };

  EXPECT_TRUE(support::gradients_match(twice, {normal(3, 4, DType::kF64, 1)}, nullptr));
}

// The dual stream of ResiDual: one tensor for all blocks, added to by the norms' own gradients.
TEST(Tape, GivesTheRightGradientsThroughADualStream) {
  Weights w;
  const auto graph = [&](Tape&, const std::vector<Var>& in) {
    Var x = in[0], dual = in[0];
    for (const Parameter* p : {&w.w1, &w.w2, &w.w1}) {
      const Var o = ops::linear(x, *p, nullptr, {.relu = true});
      dual = ops::add_scaled(dual, o);
      x = ops::add_layer_norm(x, o, w.gain, w.bias, 1e-5);
    }
    return ops::add_scaled(ops::layer_norm(dual, w.gain, w.bias, 1e-7), x);
  };

  EXPECT_TRUE(support::gradients_match(graph, {normal(3, 4, DType::kF64, 1)}, &w.store));
}

TEST(Tape, CallsReadyOncePerParameterAfterItsLastGradient) {
  Weights w;
  const auto device = tensor::make_reference_device();
  Tape tape(*device, DType::kF64, {});
  const Var x = tape.leaf(normal(3, 4, DType::kF64, 1));
  const Var h =
      ops::linear(ops::linear(ops::linear(x, w.w1, nullptr), w.w2, nullptr), w.w1, nullptr);
  std::vector<std::string> ready;
  Tensor w1_then;

  tape.backward(h, normal(3, 4, DType::kF64, 2), [&](const Parameter& p) {
    ready.push_back(p.name);
    if (&p == &w.w1) w1_then = support::copy_of(p.grad);
  });

  EXPECT_EQ(ready, (std::vector<std::string>{"w2", "w1"}));
  EXPECT_TRUE(support::has_same_bits(w1_then, w.w1.grad));
}

TEST(Tape, CallsReadyForAParameterWhoseOutputIsUnused) {
  Weights w;
  const auto device = tensor::make_reference_device();
  Tape tape(*device, DType::kF64, {});
  const Var x = tape.leaf(normal(3, 4, DType::kF64, 1));
  (void)ops::linear(x, w.w2, nullptr);
  const Var y = ops::linear(x, w.w1, nullptr);
  std::vector<std::string> ready;

  tape.backward(y, normal(3, 4, DType::kF64, 2),
                [&](const Parameter& p) { ready.push_back(p.name); });

  EXPECT_EQ(ready, (std::vector<std::string>{"w1", "w2"}));
  EXPECT_EQ(support::norm_of(w.w2.grad), 0);
}

TEST(Tape, ReturnsMemoryToTheMark) {
  Weights w;
  const auto device = tensor::make_reference_device();
  const Tensor before = device->arena().bottom(1, 8, DType::kF64);
  const int64_t used = device->arena().used_bytes();
  {
    Tape tape(*device, DType::kF64, {});
    const Var x = tape.constant(normal(3, 4, DType::kF64, 1));
    const Var y = ops::add_layer_norm(ops::linear(x, w.w1, nullptr), x, w.gain, w.bias, 1e-5);
    EXPECT_GT(device->arena().used_bytes(), used);

    tape.backward(y, normal(3, 4, DType::kF64, 2));

    EXPECT_EQ(device->arena().used_bytes(), used) << "while the tape lives";
  }
  {
    Tape tape(*device, DType::kF64, {.recording = false});
    (void)ops::linear(tape.constant(normal(3, 4, DType::kF64, 1)), w.w1, nullptr);
  }
  EXPECT_EQ(device->arena().used_bytes(), used) << "after a pass without backward";
}

// Two streams that begin as one; the segments return an input, an output twice, and one not set.
Tape::Segment mixing_segment(const Weights& w, std::vector<Tape::Run>* runs) {
  return [&w, runs](std::span<const Var> in, Tape::Run run) {
    runs->push_back(run);
    const Var h = ops::linear(in[0], w.w1, nullptr, {.relu = true});
    const Var sum = ops::add_layer_norm(in[1], h, w.gain, w.bias, 1e-5);
    return std::vector<Var>{sum, in[1], sum, Var{}};
  };
}

struct Streams {
  Tensor gradient, dx, y;
  std::vector<std::string> ready;
  int64_t peak = 0;
};

Streams run_segments(bool recomputes, std::vector<Tape::Run>* runs) {
  Weights w;
  const auto device = tensor::make_reference_device();
  Tape tape(*device, DType::kF64, {});
  const Var x = tape.leaf(normal(300, 4, DType::kF64, 1));
  const Tape::Segment f = mixing_segment(w, runs);
  Var a = x, b = x;
  for (int i = 0; i < 20; ++i) {
    const std::vector<Var> in = {a, b};
    const std::vector<Var> out =
        recomputes ? tape.recomputed("segment", in, f) : f(in, Tape::Run::kFirst);
    EXPECT_FALSE(out[3].is_set());
    a = ops::linear(out[0], w.w2, nullptr);
    b = ops::add_scaled(ops::add_scaled(out[1], out[2], 0.5, 0.5), a);
  }
  Streams s;
  s.y = support::copy_of(b.value());
  tape.backward(b, normal(300, 4, DType::kF64, 2),
                [&](const Parameter& p) { s.ready.push_back(p.name); });
  EXPECT_TRUE(x.grad().is_sole_owner()) << "its memory may be gone";
  s.dx = support::copy_of(x.grad());
  s.gradient = support::copy_of(w.gradient);
  s.peak = device->arena().peak_bytes();
  return s;
}

TEST(Tape, RunsSegmentsAgainWithTheBitsOfOneRun) {
  std::vector<Tape::Run> once, twice;

  const Streams want = run_segments(false, &once), got = run_segments(true, &twice);

  EXPECT_TRUE(support::has_same_bits(got.y, want.y));
  EXPECT_TRUE(support::has_same_bits(got.dx, want.dx));
  EXPECT_TRUE(support::has_same_bits(got.gradient, want.gradient));
  EXPECT_EQ(got.ready, want.ready);
  EXPECT_LT(got.peak, want.peak);
  std::vector<Tape::Run> expected(20, Tape::Run::kFirst);
  EXPECT_EQ(once, expected);
  expected.resize(40, Tape::Run::kAgain);
  EXPECT_EQ(twice, expected);
}

TEST(Tape, RunsASegmentOnceAndKeepsItsOutputsWhereNothingIsRecorded) {
  Weights w;
  const auto device = tensor::make_reference_device();
  Tape tape(*device, DType::kF64, {.recording = false});
  const Var x = tape.constant(normal(300, 4, DType::kF64, 1));
  std::vector<Tape::Run> runs;
  const std::vector<Var> in = {x, x};
  const Tape::Segment f = mixing_segment(w, &runs);
  const std::vector<Var> want = f(in, Tape::Run::kFirst);
  const int64_t used = device->arena().used_bytes();

  const std::vector<Var> out = tape.recomputed("segment", in, f);

  EXPECT_EQ(runs, std::vector<Tape::Run>(2, Tape::Run::kFirst));
  EXPECT_TRUE(support::has_same_bits(out[0].value(), want[0].value()));
  EXPECT_EQ(out[1].value().address(), x.value().address());
  EXPECT_EQ(out[2].value().address(), out[0].value().address());
  EXPECT_EQ(device->arena().used_bytes() - used, out[0].value().bytes()) << "one new tensor";
}

// None of its outputs reaches the loss: it is not run again, its parameters are ready.
TEST(Tape, DoesNotRunASegmentAgainWhoseOutputsNobodyUsed) {
  Weights w;
  const auto device = tensor::make_reference_device();
  Tape tape(*device, DType::kF64, {});
  const Var x = tape.leaf(normal(3, 4, DType::kF64, 1));
  std::vector<Tape::Run> runs;
  const std::vector<Var> in = {x, x};
  (void)tape.recomputed("segment", in, mixing_segment(w, &runs));
  std::vector<std::string> ready;

  tape.backward(ops::linear(x, w.w2, nullptr), normal(3, 4, DType::kF64, 2),
                [&](const Parameter& p) { ready.push_back(p.name); });

  EXPECT_EQ(runs, std::vector<Tape::Run>{Tape::Run::kFirst});
  EXPECT_EQ(ready, (std::vector<std::string>{"w2", "bias", "gain", "w1"}));
}

TEST(Tape, WithoutRecordingMakesNoGradients) {
  Weights w;
  const auto device = tensor::make_reference_device();
  Tape tape(*device, DType::kF64, {.recording = false});
  const Var x = tape.leaf(normal(3, 4, DType::kF64, 1));
  int ready = 0;

  tape.backward(ops::linear(x, w.w1, nullptr), normal(3, 4, DType::kF64, 2),
                [&](const Parameter&) { ++ready; });

  EXPECT_TRUE(x.grad().is_empty());
  EXPECT_EQ(ready, 0);
  EXPECT_EQ(support::norm_of(w.gradient), 0);
}

TEST(Tape, RefusesAGradientOfAnotherShapeAndAnUnsupportedDtype) {
  const auto reference = tensor::make_reference_device();
  const auto cpu = tensor::make_cpu_device(1);
  Tape tape(*reference, DType::kF64, {});
  const Var x = tape.leaf(normal(2, 3, DType::kF64, 1));

  EXPECT_TRUE(support::throws_with<InvalidArgument>(
      "accumulate: gradient f64 (3, 2) for a value f64 (2, 3)",
      [&] { tape.accumulate(x, normal(3, 2, DType::kF64, 1)); }));
  EXPECT_TRUE(support::throws_with<InvalidArgument>("device cpu: does not compute in f64",
                                                    [&] { Tape(*cpu, DType::kF64, {}); }));
}

TEST(ParameterStore, RefusesWhatItCannotHold) {
  const auto device = tensor::make_reference_device();
  ParameterStore store(*device, DType::kF32);
  store.add("a", Role::kBias, {3});
  EXPECT_TRUE(support::throws_with<InvalidArgument>("parameter a: declared twice",
                                                    [&] { store.add("a", Role::kBias, {4}); }));
  EXPECT_TRUE(support::throws_with<InvalidArgument>("parameter b: needs one or two extents", [&] {
    store.add("b", Role::kBias, {1, 2, 3});
  }));
  store.freeze();
  EXPECT_TRUE(
      support::throws_with<InvalidArgument>("parameter c: declared after the store was frozen",
                                            [&] { store.add("c", Role::kBias, {4}); }));
  EXPECT_TRUE(support::throws_with<InvalidArgument>("parameter d: the model has none of this name",
                                                    [&] { (void)store.find("d"); }));
  EXPECT_TRUE(support::throws_with<InvalidArgument>(
      "bind_gradients: got f32 (1, 3), expected 16 elements of f32",
      [&] { store.bind_gradients(support::zeros(1, 3, DType::kF32)); }));
}

// The check itself must be able to fail.
TEST(GradCheck, DetectsAWrongAMissingAndANanGradient) {
  const std::vector<Tensor> inputs = {normal(2, 3, DType::kF64, 1)};
  const auto with_factor = [](double factor) {
    return [factor](Tape& tape, const std::vector<Var>& in) {
      const Tensor y = support::copy_of(in[0].value());
      return tape.record("test", y, std::span(&in[0], 1), {},
                         [&tape, x = in[0], factor](const Tensor& dy) {
                           Tensor dx = support::copy_of(dy);
                           for (int64_t i = 0; i < dx.numel(); ++i) dx.data<double>()[i] *= factor;
                           tape.accumulate(x, std::move(dx));
                         });
    };
  };
  const auto constant = [](Tape& tape, const std::vector<Var>& in) {
    const Tensor y = normal(2, 3, DType::kF64, 4);
    return tape.record("test", y, std::span(&in[0], 1), {}, [&tape, x = in[0]](const Tensor& dy) {
      tape.accumulate(x, support::zeros(dy.rows(), dy.cols(), dy.dtype()));
    });
  };

  EXPECT_TRUE(support::gradients_match(with_factor(1), inputs));
  EXPECT_FALSE(support::gradients_match(with_factor(1.00001), inputs));
  EXPECT_FALSE(support::gradients_match(with_factor(std::nan("")), inputs));
  EXPECT_FALSE(support::gradients_match(constant, inputs));
}

}  // namespace
}  // namespace fathom::autograd
