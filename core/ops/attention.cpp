#include "core/ops/attention.h"

namespace fathom::ops {
namespace {

using autograd::Kernels;

void check(const AttentionShape& shape, int64_t C, int64_t query_rows, int64_t key_rows) {
  require(shape.heads > 0 && C % shape.heads == 0, "attention: width ", C, " is not a multiple of ",
          shape.heads, " heads");
  require(shape.queries.count == shape.keys.count, "attention: ", shape.queries.count,
          " query sentences, but ", shape.keys.count, " key sentences");
  require(shape.queries.total == query_rows && shape.keys.total <= key_rows,
          "attention: segments cover ", shape.queries.total, " and ", shape.keys.total, " rows of ",
          query_rows, " and ", key_rows);
}

// Where queries, keys and values are: (T, C), (S, C), (S, C), columns of wider matrices or not.
struct Inputs {
  Tensor q, k, v;
};

struct Output {
  Tensor y, lse;
};

Output forward(Tape& tape, const Inputs& in, const AttentionShape& shape,
               const kernels::Dropout& dropout) {
  const int64_t T = in.q.rows(), C = in.q.cols();
  Output out = {.y = tape.keep(T, C), .lse = {}};
  if (tape.is_recording()) out.lse = tape.keep(T, shape.heads, tape.wide());
  tape.context().run(&Kernels::attention_forward, {.q = in.q,
                                                   .k = in.k,
                                                   .v = in.v,
                                                   .y = out.y,
                                                   .lse = out.lse,
                                                   .queries = shape.queries,
                                                   .keys = shape.keys,
                                                   .heads = shape.heads,
                                                   .causal = shape.causal,
                                                   .dropout = dropout});
  return out;
}

void backward(Tape& tape, const Tensor& dy, const Inputs& in, const Output& out,
              const Inputs& derivative, const AttentionShape& shape,
              const kernels::Dropout& dropout) {
  tape.context().run(&Kernels::attention_backward, {.dy = dy,
                                                    .q = in.q,
                                                    .k = in.k,
                                                    .v = in.v,
                                                    .y = out.y,
                                                    .lse = out.lse,
                                                    .dq = derivative.q,
                                                    .dk = derivative.k,
                                                    .dv = derivative.v,
                                                    .queries = shape.queries,
                                                    .keys = shape.keys,
                                                    .heads = shape.heads,
                                                    .causal = shape.causal,
                                                    .dropout = dropout});
}

Inputs of_qkv(const Tensor& qkv) {
  const int64_t C = qkv.cols() / 3;
  return {qkv.columns(0, C), qkv.columns(C, C), qkv.columns(2 * C, C)};
}

Inputs of_q_kv(const Tensor& q, const Tensor& kv) {
  return {q, kv.columns(0, q.cols()), kv.columns(q.cols(), q.cols())};
}

}  // namespace

Var self_attention(const Var& qkv, const AttentionShape& shape, const kernels::Dropout& dropout) {
  Tape& tape = qkv.tape();
  check(shape, qkv.value().cols() / 3, qkv.value().rows(), qkv.value().rows());
  const Output out = forward(tape, of_qkv(qkv.value()), shape, dropout);
  return tape.record("self_attention", out.y, std::span(&qkv, 1), {},
                     [&tape, qkv, out, shape, dropout](const Tensor& dy) {
                       const Tensor& x = qkv.value();
                       Tensor dx = tape.scratch(x.rows(), x.cols());  // (T, 3 C)
                       backward(tape, dy, of_qkv(x), out, of_qkv(dx), shape, dropout);
                       tape.accumulate(qkv, std::move(dx));
                     });
}

Var cross_attention(const Var& q, const Var& kv, const AttentionShape& shape,
                    const kernels::Dropout& dropout) {
  Tape& tape = q.tape();
  const int64_t C = q.value().cols();
  require(kv.value().cols() == 2 * C, "cross_attention: q is ", q.value(), ", kv is ", kv.value());
  check(shape, C, q.value().rows(), kv.value().rows());
  const Output out = forward(tape, of_q_kv(q.value(), kv.value()), shape, dropout);
  const Var inputs[] = {q, kv};
  return tape.record(
      "cross_attention", out.y, inputs, {}, [&tape, q, kv, out, shape, dropout](const Tensor& dy) {
        Tensor dq = tape.scratch(dy.rows(), dy.cols());               // (T, C)
        Tensor dkv = tape.scratch(kv.value().rows(), 2 * dy.cols());  // (S, 2 C)
        backward(tape, dy, of_q_kv(q.value(), kv.value()), out, of_q_kv(dq, dkv), shape, dropout);
        tape.accumulate(kv, std::move(dkv));
        tape.accumulate(q, std::move(dq));
      });
}

}  // namespace fathom::ops
