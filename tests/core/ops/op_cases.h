// Every op as a small graph on packed random rows, ready to run on any device; and what one run
// gives: output and all gradients. Claims that hold for all ops loop over `op_cases()`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/attention.h"
#include "core/ops/elementwise.h"
#include "core/ops/embedding.h"
#include "core/ops/layer_norm.h"
#include "core/ops/linear.h"
#include "tests/support/grad_check.h"
#include "tests/support/random_tensor.h"

namespace fathom::ops {

struct OpShape {
  int64_t heads = 3;
  int64_t head_width = 4;  // the width is heads * head_width
  int64_t out = 7;         // of linear layers; and entries of the embedding table, plus 3
  [[nodiscard]] int64_t width() const { return heads * head_width; }
};

// An op with its data. Parameters and their gradients live in `store`.
struct OpCase {
  support::Rows rows;  // of the queries
  support::Rows keys;  // of cross-attention, ragged in another way
  OpShape shape;
  DType dtype;
  ParameterStore store;
  Tensor gradient;
  std::vector<Tensor> inputs;
  support::Graph graph;
  std::vector<int32_t> tokens, positions;
  Tensor sinusoids;

  OpCase(support::Rows r, OpShape s, DType d)
      : rows(std::move(r)), keys(keys_for(rows)), shape(s), dtype(d), store(d) {}

  // Fills the parameters, named by their seeds, and binds zeroed gradients.
  void ready() {
    store.freeze();
    for (const auto& p : store.all()) {
      const PhiloxStream stream(3, p->name);
      visit_float(dtype, [&]<class T>() {
        for (int64_t i = 0; i < p->numel(); ++i)
          p->value.data<T>()[i] =
              T(0.5 * stream.normal(uint64_t(i)) + (p->role == Role::kNormGain));
      });
    }
    gradient = autograd::allocate_flat(store.size(), dtype);
    store.bind_gradients(gradient);
  }

 private:
  static support::Rows keys_for(const support::Rows& r) {
    std::vector<int32_t> lengths;
    std::vector<uint32_t> sentences;
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
  c.inputs = {c.rows.normal(C, c.dtype, 1)};
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
  c.inputs = {c.rows.normal(C, c.dtype, 1)};
  if (of_sum) c.inputs.push_back(c.rows.normal(C, c.dtype, 2));
  c.graph = [&gain, &bias, of_sum](Tape&, const std::vector<Var>& in) {
    return of_sum ? add_layer_norm(in[0], in[1], gain, bias, 1e-5)
                  : layer_norm(in[0], gain, bias, 1e-5);
  };
}

inline void build_embedding(OpCase& c, bool dropout) {
  const int64_t C = c.shape.width(), V = c.shape.out + 3;
  const Parameter& table = c.store.add("table", Role::kEmbedding, {V, C}, C, V);
  c.ready();
  c.tokens = c.rows.tokens(V, 1);
  c.positions = c.rows.positions();
  c.sinusoids = support::normal(c.rows.segments.longest(), C, c.dtype, 5);  // odd widths as well
  c.graph = [&c, &table, dropout](Tape& tape, const std::vector<Var>&) {
    return embedding(tape, table, c.sinusoids, c.tokens, c.positions, 1.7,
                     dropout ? drop(tape, c) : kernels::Dropout{});
  };
}

inline void build_elementwise(OpCase& c, bool is_gelu, bool dropout) {
  const int64_t C = c.shape.width();
  c.ready();
  c.inputs = {c.rows.normal(C, c.dtype, 1)};
  if (!is_gelu) c.inputs.push_back(c.rows.normal(C, c.dtype, 2));
  c.graph = [&c, is_gelu, dropout](Tape& tape, const std::vector<Var>& in) {
    if (!is_gelu) return add_scaled(in[0], in[1], 1.5, -0.75);
    return gelu(in[0], dropout ? drop(tape, c) : kernels::Dropout{});
  };
}

inline void build_self_attention(OpCase& c, bool causal, bool dropout) {
  c.ready();
  c.inputs = {c.rows.normal(3 * c.shape.width(), c.dtype, 1)};
  c.graph = [&c, causal, dropout](Tape& tape, const std::vector<Var>& in) {
    return self_attention(in[0],
                          {.queries = &c.rows.segments,
                           .keys = &c.rows.segments,
                           .heads = c.shape.heads,
                           .causal = causal},
                          dropout ? drop(tape, c) : kernels::Dropout{});
  };
}

inline void build_cross_attention(OpCase& c, bool dropout) {
  c.ready();
  c.inputs = {c.rows.normal(c.shape.width(), c.dtype, 1),
              c.keys.normal(2 * c.shape.width(), c.dtype, 2)};
  c.graph = [&c, dropout](Tape& tape, const std::vector<Var>& in) {
    return cross_attention(
        in[0], in[1],
        {.queries = &c.rows.segments, .keys = &c.keys.segments, .heads = c.shape.heads},
        dropout ? drop(tape, c) : kernels::Dropout{});
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
      {"Gelu", [](OpCase& c) { build_elementwise(c, true, false); }},
      {"GeluDropout", [](OpCase& c) { build_elementwise(c, true, true); }},
      {"SelfAttention", [](OpCase& c) { build_self_attention(c, false, false); }},
      {"CausalSelfAttention", [](OpCase& c) { build_self_attention(c, true, false); }},
      {"SelfAttentionDropout", [](OpCase& c) { build_self_attention(c, true, true); }},
      {"CrossAttention", [](OpCase& c) { build_cross_attention(c, false); }},
      {"CrossAttentionDropout", [](OpCase& c) { build_cross_attention(c, true); }},
  };
  return all;
}

[[nodiscard]] inline std::unique_ptr<OpCase> make_case(const NamedOp& op, support::Rows rows,
                                                       OpShape shape, DType dtype) {
  auto c = std::make_unique<OpCase>(std::move(rows), shape, dtype);
  op.build(*c);
  return c;
}

// Output, then the gradient of every input, then of every parameter; copies on the heap.
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
  out.add("output", y.value());
  if (!mode.recording) return out;

  for (int64_t i = 0; i < c.gradient.numel(); ++i)
    visit_float(c.dtype, [&]<class T>() { c.gradient.data<T>()[i] = 0; });
  tape.backward(y, support::normal(y.value().rows(), y.value().cols(), c.dtype, 7));
  for (size_t i = 0; i < leaves.size(); ++i) out.add("d input", leaves[i].grad());
  for (const auto& p : c.store.all()) out.add("d " + p->name, p->grad);
  return out;
}

}  // namespace fathom::ops
