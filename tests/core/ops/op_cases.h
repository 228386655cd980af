// Every op as a small graph on packed random rows, ready to run on any device; and what one run
// gives: output and all gradients. Claims that hold for all ops loop over `op_cases()`.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/attention.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/elementwise.h"
#include "core/ops/embedding.h"
#include "core/ops/layer_norm.h"
#include "core/ops/linear.h"
#include "core/ops/weighted.h"
#include "tests/support/grad_check.h"
#include "tests/support/random_tensor.h"

namespace fathom::ops {

struct OpShape {
  int64_t heads = 3;
  int64_t head_width = 4;  // the width is heads * head_width
  int64_t out = 7;         // of linear layers; and of the vocabulary, plus 3
  [[nodiscard]] int64_t width() const { return heads * head_width; }
};

// Which numbers fill a case: any, or those that bf16 holds, so that a case in f32 and one in bf16
// start from the same.
enum class Numbers { kAny, kBf16 };

// An op with its data. Parameters and their gradients live in `store`, in memory of a device of its
// own; any device that reaches the host's memory can run the case.
struct OpCase {
  support::Rows rows;  // of the queries
  support::Rows keys;  // of cross-attention, ragged in another way
  OpShape shape;
  DType dtype;
  Numbers numbers;
  std::unique_ptr<Device> home = tensor::make_reference_device();
  ParameterStore store;
  Tensor gradient;
  std::vector<Tensor> inputs;
  support::Graph graph;
  // Set where the op is a loss that computes its own derivative, of `weight` times the sum of its
  // output: backward then takes no seed.
  std::optional<double> weight;
  Tensor tokens, positions, sinusoids;

  OpCase(support::Rows r, OpShape s, DType d, Numbers n)
      : rows(std::move(r)), keys(keys_for(rows)), shape(s), dtype(d), numbers(n), store(*home, d) {}

  // Fills the parameters, named by their seeds, and binds zeroed gradients.
  void ready() {
    store.freeze();
    for (const auto& p : store.all()) {
      const PhiloxStream stream(3, p->name);
      for (int64_t r = 0; r < p->value.rows(); ++r)
        for (int64_t c = 0; c < p->value.cols(); ++c)
          kernels::store(p->value, r, c,
                         0.5 * stream.normal(uint64_t(r * p->value.cols() + c)) +
                             (p->role == Role::kNormGain));
      if (p->is_matrix()) (void)as_asked(p->value);
    }
    gradient = support::zeros(1, store.size(), store.wide());
    store.bind_gradients(gradient);
  }
  void add_input(const support::Rows& r, int64_t cols) {
    inputs.push_back(as_asked(r.normal(cols, dtype, inputs.size() + 1)));
  }
  // d(loss)/d(y)
  [[nodiscard]] Tensor seed_for(const Tensor& y) const {
    return as_asked(support::normal(y.rows(), y.cols(), y.dtype(), 7));
  }
  // For central differences.
  [[nodiscard]] support::Loss loss() const {
    if (!weight) return support::projected(graph);
    return [this](Tape& tape, const std::vector<Var>& in) {
      const Var y = graph(tape, in);
      double sum = 0;
      for (int64_t i = 0; i < y.value().numel(); ++i) sum += *weight * y.value().data<double>()[i];
      if (tape.is_recording()) tape.backward(y);
      return sum;
    };
  }

 private:
  Tensor as_asked(const Tensor& t) const {
    if (numbers == Numbers::kBf16)
      for (int64_t r = 0; r < t.rows(); ++r)
        for (int64_t c = 0; c < t.cols(); ++c)
          kernels::store(t, r, c, double(kernels::Bf16(kernels::load(t, r, c))));
    return t;
  }
  static support::Rows keys_for(const support::Rows& r) {
    std::vector<int32_t> lengths;
    std::vector<int32_t> sentences;
    for (int64_t i = 0; i < r.segments.count(); ++i) {
      sentences.push_back(r.sentence[size_t(r.segments.begin[size_t(i)])]);
      lengths.push_back(int32_t((sentences.back() * 7 + 2) % 13 + 1));
    }
    return {lengths, sentences};
  }
};

struct NamedOp {
  const char* name;
  void (*build)(OpCase&);  // declares parameters, inputs and the graph
};

inline kernels::Dropout drop(const Tape& tape, const OpCase& c) {
  return tape.dropout(hash_name("test"), 0.3, c.rows.ids());
}

inline void build_linear(OpCase& c, bool bias, bool relu, bool dropout) {
  const int64_t C = c.shape.width(), N = c.shape.out;
  const Parameter& w = c.store.add("w", Role::kFeedForwardIn, {N, C}, C, N);
  const Parameter* b = bias ? &c.store.add("b", Role::kBias, {N}, C, N) : nullptr;
  c.ready();
  c.add_input(c.rows, C);
  c.graph = [&c, &w, b, relu, dropout](Tape& tape, const std::vector<Var>& in) {
    return linear(in[0], w, b,
                  {.relu = relu, .dropout = dropout ? drop(tape, c) : kernels::Dropout{}});
  };
}

inline void build_norm(OpCase& c, bool of_sum) {
  const int64_t C = c.shape.width();
  const Parameter& gain = c.store.add("gain", Role::kNormGain, {C});
  const Parameter& bias = c.store.add("bias", Role::kNormBias, {C});
  c.ready();
  c.add_input(c.rows, C);
  if (of_sum) c.add_input(c.rows, C);
  c.graph = [&gain, &bias, of_sum](Tape&, const std::vector<Var>& in) {
    return of_sum ? add_layer_norm(in[0], in[1], gain, bias, 1e-5)
                  : layer_norm(in[0], gain, bias, 1e-5);
  };
}

inline void build_embedding(OpCase& c, bool dropout) {
  const int64_t C = c.shape.width(), V = c.shape.out + 3;
  const Parameter& table = c.store.add("table", Role::kEmbedding, {V, C}, C, V);
  c.ready();
  c.tokens = support::integers(c.rows.tokens(V, 1));
  c.positions = support::integers(c.rows.position);
  c.sinusoids =
      support::normal(c.rows.segments.longest(), C, c.store.wide(), 5);  // odd widths as well
  c.graph = [&c, &table, dropout](Tape& tape, const std::vector<Var>&) {
    return embedding(tape, table, c.sinusoids, c.tokens, c.positions, 1.7,
                     dropout ? drop(tape, c) : kernels::Dropout{});
  };
}

inline void build_elementwise(OpCase& c, bool is_gelu, bool dropout) {
  const int64_t C = c.shape.width();
  c.ready();
  c.add_input(c.rows, C);
  if (!is_gelu) c.add_input(c.rows, C);
  c.graph = [&c, is_gelu, dropout](Tape& tape, const std::vector<Var>& in) {
    if (!is_gelu) return add_scaled(in[0], in[1], 1.5, -0.75);
    return gelu(in[0], dropout ? drop(tape, c) : kernels::Dropout{});
  };
}

inline void build_weighted_sum(OpCase& c) {
  const Parameter& w = c.store.add("w", Role::kMixing, {5});
  c.ready();
  for (int i = 0; i < 3; ++i) c.add_input(c.rows, c.shape.width());
  c.graph = [&w](Tape&, const std::vector<Var>& in) { return weighted_sum(in, w, 1); };
}

inline void build_scale_columns(OpCase& c) {
  const Parameter& gain = c.store.add("gain", Role::kMixing, {c.shape.width()});
  c.ready();
  c.add_input(c.rows, c.shape.width());
  c.graph = [&gain](Tape&, const std::vector<Var>& in) { return scale_columns(in[0], gain); };
}

inline void build_self_attention(OpCase& c, bool causal, bool dropout) {
  c.ready();
  c.add_input(c.rows, 3 * c.shape.width());
  c.graph = [&c, causal, dropout](Tape& tape, const std::vector<Var>& in) {
    return self_attention(
        in[0],
        {.queries = c.rows.view(), .keys = c.rows.view(), .heads = c.shape.heads, .causal = causal},
        dropout ? drop(tape, c) : kernels::Dropout{});
  };
}

inline void build_cross_attention(OpCase& c, bool dropout) {
  c.ready();
  c.add_input(c.rows, c.shape.width());
  c.add_input(c.keys, 2 * c.shape.width());
  c.graph = [&c, dropout](Tape& tape, const std::vector<Var>& in) {
    return cross_attention(
        in[0], in[1], {.queries = c.rows.view(), .keys = c.keys.view(), .heads = c.shape.heads},
        dropout ? drop(tape, c) : kernels::Dropout{});
  };
}

inline void build_cross_entropy(OpCase& c, double smoothing) {
  const int64_t C = c.shape.width(), V = c.shape.out + 3;
  const Parameter& w = c.store.add("w", Role::kOutput, {V, C}, C, V);
  c.ready();
  c.add_input(c.rows, C);
  c.tokens = support::integers(c.rows.tokens(V, 1));
  c.weight = 0.37;
  c.graph = [&c, &w, smoothing](Tape&, const std::vector<Var>& in) {
    return linear_cross_entropy(in[0], w, c.tokens, smoothing, *c.weight).loss;
  };
}

[[nodiscard]] inline const std::vector<NamedOp>& op_cases() {
  static const std::vector<NamedOp> all = {
      {"Linear", [](OpCase& c) { build_linear(c, true, false, false); }},
      {"LinearWithoutBias", [](OpCase& c) { build_linear(c, false, false, false); }},
      {"LinearRelu", [](OpCase& c) { build_linear(c, true, true, false); }},
      {"LinearDropout", [](OpCase& c) { build_linear(c, true, false, true); }},
      {"LinearReluDropout", [](OpCase& c) { build_linear(c, true, true, true); }},
      {"LayerNorm", [](OpCase& c) { build_norm(c, false); }},
      {"AddLayerNorm", [](OpCase& c) { build_norm(c, true); }},
      {"Embedding", [](OpCase& c) { build_embedding(c, false); }},
      {"EmbeddingDropout", [](OpCase& c) { build_embedding(c, true); }},
      {"AddScaled", [](OpCase& c) { build_elementwise(c, false, false); }},
      {"WeightedSum", build_weighted_sum},
      {"ScaleColumns", build_scale_columns},
      {"Gelu", [](OpCase& c) { build_elementwise(c, true, false); }},
      {"GeluDropout", [](OpCase& c) { build_elementwise(c, true, true); }},
      {"SelfAttention", [](OpCase& c) { build_self_attention(c, false, false); }},
      {"CausalSelfAttention", [](OpCase& c) { build_self_attention(c, true, false); }},
      {"SelfAttentionDropout", [](OpCase& c) { build_self_attention(c, true, true); }},
      {"CrossAttention", [](OpCase& c) { build_cross_attention(c, false); }},
      {"CrossAttentionDropout", [](OpCase& c) { build_cross_attention(c, true); }},
      {"CrossEntropy", [](OpCase& c) { build_cross_entropy(c, 0); }},
      {"CrossEntropySmoothed", [](OpCase& c) { build_cross_entropy(c, 0.1); }},
  };
  return all;
}

[[nodiscard]] inline std::unique_ptr<OpCase> make_case(const NamedOp& op, support::Rows rows,
                                                       OpShape shape, DType dtype,
                                                       Numbers numbers = Numbers::kAny) {
  auto c = std::make_unique<OpCase>(std::move(rows), shape, dtype, numbers);
  op.build(*c);
  return c;
}

// Output, a row for each row of the case, then the gradient of every input, then of every
// parameter; copies on the heap.
struct OpResult {
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
  void add(std::string name, const Tensor& t) {
    names.push_back(std::move(name));
    tensors.push_back(support::copy_of(t));
  }
};

[[nodiscard]] inline OpResult run_case(OpCase& c, Device& device, autograd::Mode mode) {
  OpResult out;
  Tape tape(device, c.dtype, mode);
  std::vector<Var> leaves;
  for (const Tensor& t : c.inputs) leaves.push_back(tape.leaf(t));
  const Var y = c.graph(tape, leaves);
  out.add("output", c.weight ? y.value().reshaped(c.rows.count(), 1) : y.value());
  if (!mode.recording) return out;

  std::memset(c.gradient.address(), 0, size_t(c.gradient.bytes()));
  tape.backward(y, c.weight ? Tensor{} : c.seed_for(y.value()));
  for (size_t i = 0; i < leaves.size(); ++i) out.add("d input", leaves[i].grad());
  for (const auto& p : c.store.all()) out.add("d " + p->name, p->grad);
  return out;
}

}  // namespace fathom::ops
