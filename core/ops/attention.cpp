#include "core/ops/attention.h"

namespace fathom::ops {
namespace {

void check(const AttentionShape& shape, int64_t C, int64_t query_rows, int64_t key_rows) {
  require(shape.heads > 0 && C % shape.heads == 0, "attention: width ", C, " is not a multiple of ",
          shape.heads, " heads");
  require(shape.queries->count() == shape.keys->count(), "attention: ", shape.queries->count(),
          " query sentences, but ", shape.keys->count(), " key sentences");
  require(shape.queries->total == query_rows && shape.keys->total <= key_rows,
          "attention: segments cover ", shape.queries->total, " and ", shape.keys->total,
          " rows of ", query_rows, " and ", key_rows);
}

}  // namespace

Var self_attention(const Var& qkv, AttentionShape shape, kernels::Dropout dropout) {
  const int64_t T = qkv.value().rows(), C = qkv.value().cols() / 3;
  check(shape, C, T, T);

  Tape& tape = qkv.tape();
  const Tensor& all = qkv.value();
  const Tensor y = tape.keep(T, C);
  const Tensor lse = tape.is_recording() ? tape.keep(T, shape.heads) : Tensor{};
  tape.kernels().attention_forward(tape.pool(), {.q = all.columns(0, C),
                                                 .k = all.columns(C, C),
                                                 .v = all.columns(2 * C, C),
                                                 .y = y,
                                                 .lse = lse,
                                                 .queries = shape.queries,
                                                 .keys = shape.keys,
                                                 .heads = shape.heads,
                                                 .causal = shape.causal,
                                                 .dropout = dropout});
  return tape.record(y, std::span(&qkv, 1), {},
                     [&tape, qkv, y, lse, C, shape, dropout](const Tensor& dy) {
                       const Tensor& x = qkv.value();
                       Tensor dx = tape.scratch(x.rows(), x.cols());
                       tape.kernels().attention_backward(tape.pool(), {.dy = dy,
                                                                       .q = x.columns(0, C),
                                                                       .k = x.columns(C, C),
                                                                       .v = x.columns(2 * C, C),
                                                                       .y = y,
                                                                       .lse = lse,
                                                                       .dq = dx.columns(0, C),
                                                                       .dk = dx.columns(C, C),
                                                                       .dv = dx.columns(2 * C, C),
                                                                       .queries = shape.queries,
                                                                       .keys = shape.keys,
                                                                       .heads = shape.heads,
                                                                       .causal = shape.causal,
                                                                       .dropout = dropout});
                       tape.accumulate(qkv, std::move(dx));
                     });
}

Var cross_attention(const Var& q, const Var& kv, AttentionShape shape, kernels::Dropout dropout) {
  const int64_t T = q.value().rows(), C = q.value().cols();
  require(kv.value().cols() == 2 * C, "cross_attention: q is ", q.value(), ", kv is ", kv.value());
  check(shape, C, T, kv.value().rows());

  Tape& tape = q.tape();
  const Tensor y = tape.keep(T, C);
  const Tensor lse = tape.is_recording() ? tape.keep(T, shape.heads) : Tensor{};
  tape.kernels().attention_forward(tape.pool(), {.q = q.value(),
                                                 .k = kv.value().columns(0, C),
                                                 .v = kv.value().columns(C, C),
                                                 .y = y,
                                                 .lse = lse,
                                                 .queries = shape.queries,
                                                 .keys = shape.keys,
                                                 .heads = shape.heads,
                                                 .causal = shape.causal,
                                                 .dropout = dropout});
  const Var inputs[] = {q, kv};
  return tape.record(y, inputs, {}, [&tape, q, kv, y, lse, C, shape, dropout](const Tensor& dy) {
    Tensor dq = tape.scratch(dy.rows(), C);
    Tensor dkv = tape.scratch(kv.value().rows(), 2 * C);
    tape.kernels().attention_backward(tape.pool(), {.dy = dy,
                                                    .q = q.value(),
                                                    .k = kv.value().columns(0, C),
                                                    .v = kv.value().columns(C, C),
                                                    .y = y,
                                                    .lse = lse,
                                                    .dq = dq,
                                                    .dk = dkv.columns(0, C),
                                                    .dv = dkv.columns(C, C),
                                                    .queries = shape.queries,
                                                    .keys = shape.keys,
                                                    .heads = shape.heads,
                                                    .causal = shape.causal,
                                                    .dropout = dropout});
    tape.accumulate(kv, std::move(dkv));
    tape.accumulate(q, std::move(dq));
  });
}

}  // namespace fathom::ops
