#include <cmath>
#include <cstring>
#include <vector>

#include "core/kernels/dropout_cpu.h"
#include "core/kernels/kernels_cpu.h"
#include "core/kernels/simd_cpu.h"
#include "core/kernels/tiles_cpu.h"

namespace fathom::kernels::cpu {
namespace {

constexpr int64_t kQueryTile = 64;     // query rows whose scores are held at once
constexpr int64_t kTaskScores = 4096;  // sentences are grouped until a task has this many scores

struct Group {
  int64_t first, last;  // sentences
};

// Groups of neighbouring sentences of about equal work; a function of the lengths alone.
std::vector<Group> group_sentences(const Segments& queries, const Segments& keys) {
  std::vector<Group> groups;
  int64_t first = 0, work = 0;
  for (int64_t n = 0; n < queries.count; ++n) {
    work += int64_t{queries.length[n]} * keys.length[n];
    if (work < kTaskScores && n + 1 < queries.count) continue;
    groups.push_back({first, n + 1});
    first = n + 1;
    work = 0;
  }
  return groups;
}

// A copy of the transpose, whose rows lie `stride` apart at `to`: the right operand of a product.
View transpose(const View& from, int64_t stride, float* to) {
  const View copy = {to, from.cols, from.rows, stride};
  for (int64_t r = 0; r < copy.rows; ++r)
    for (int64_t c = 0; c < copy.cols; ++c) copy.row(r)[c] = from.row(c)[r];
  return copy;
}

// One head of one sentence.
struct Head {
  int64_t query0, n, key0, m, column, d, head;

  [[nodiscard]] View queries(const Matrix& x) const { return view(x, query0, n, column, d); }
  [[nodiscard]] View keys(const Matrix& x) const { return view(x, key0, m, column, d); }
  [[nodiscard]] float scale() const { return 1 / std::sqrt(float(d)); }
  [[nodiscard]] int64_t padded() const { return round_up(m, kScorePadding); }
};

// Some queries of a head, and the keys that they attend to.
struct Tile {
  int64_t first, rows;  // among the head's queries
  int64_t seen;         // of its keys, by any of the rows
};

template <class F>
void for_each_head(HostContext& context, const Segments& queries, const Segments& keys,
                   int64_t heads, int64_t d, const F& f) {
  const std::vector<Group> groups = group_sentences(queries, keys);
  context.pool().run(int64_t(groups.size()) * heads, [&](int64_t task, int worker) {
    const Group& group = groups[size_t(task / heads)];
    const int64_t h = task % heads;
    for (int64_t s = group.first; s < group.last; ++s)
      f(context.scratch(worker),
        Head{queries.begin[s], queries.length[s], keys.begin[s], keys.length[s], h * d, d, h});
  });
}

template <class F>
void for_each_tile(const Head& head, bool causal, const F& f) {
  for (int64_t first = 0; first < head.n; first += kQueryTile) {
    const int64_t rows = std::min(kQueryTile, head.n - first);
    f(Tile{first, rows, causal ? std::min(head.m, first + rows) : head.m});
  }
}

// The keys that row `i` of a tile attends to.
int64_t seen_by(const Head& head, const Tile& tile, int64_t i, bool causal) {
  return causal ? std::min(head.m, tile.first + i + 1) : head.m;
}

// The (rows, seen) scores of a tile, in scratch memory.
View scores(Scratch& s, Scratch::Slot slot, const Head& head, const Tile& tile) {
  return {s.floats(slot, kQueryTile * head.padded()), tile.rows, tile.seen, head.padded()};
}

View transposed_keys(Scratch& s, Scratch::Slot slot, const Head& head, const Matrix& x) {
  return transpose(head.keys(x), head.padded(), s.floats(slot, head.d * head.padded()));
}

void head_forward(const SimdLoops& loops, Scratch& s, const AttentionForward& a, const Head& at) {
  const View q = at.queries(a.q), v = at.keys(a.v), y = at.queries(a.y);
  const View keys = transposed_keys(s, Scratch::kKeys, at, a.k);
  for_each_tile(at, a.causal, [&](const Tile& tile) {
    const View p = scores(s, Scratch::kScores, at, tile);
    loops.set_product(p, q.rows_at(tile.first, tile.rows), keys.first_cols(tile.seen));
    for (int64_t i = 0; i < tile.rows; ++i) {
      const int64_t row = at.query0 + tile.first + i, seen = seen_by(at, tile, i, a.causal);
      const float* factors = row_factors(loops, s, a.dropout, row, uint32_t(at.head + 1), seen);
      const RowSums sums = loops.softmax(seen, tile.seen, at.scale(), factors, p.row(i));
      if (!a.lse.is_empty()) a.lse.row<float>(row)[at.head] = sums.largest + std::log(sums.exps);
    }
    loops.set_product(y.rows_at(tile.first, tile.rows), p, v.rows_at(0, tile.seen));
  });
}

void set_to_zero(const View& x) {
  for (int64_t r = 0; r < x.rows; ++r) std::memset(x.row(r), 0, size_t(x.cols) * sizeof(float));
}

// The formulas stand in attention_reference.cpp.
void head_backward(const SimdLoops& loops, Scratch& s, const AttentionBackward& a, const Head& at) {
  const View k = at.keys(a.k), dk = at.keys(a.dk), dv = at.keys(a.dv);
  const View keys = transposed_keys(s, Scratch::kKeys, at, a.k);
  const View values = transposed_keys(s, Scratch::kValues, at, a.v);
  set_to_zero(dk);
  set_to_zero(dv);
  for_each_tile(at, a.causal, [&](const Tile& tile) {
    const auto rows_of = [&](const Matrix& x) {
      return at.queries(x).rows_at(tile.first, tile.rows);
    };
    const View q = rows_of(a.q), y = rows_of(a.y), dy = rows_of(a.dy);
    const View p = scores(s, Scratch::kScores, at, tile);
    const View ds = scores(s, Scratch::kDerivative, at, tile);
    loops.set_product(p, q, keys.first_cols(tile.seen));
    loops.set_product(ds, dy, values.first_cols(tile.seen));
    for (int64_t i = 0; i < tile.rows; ++i) {
      const int64_t row = at.query0 + tile.first + i, seen = seen_by(at, tile, i, a.causal);
      const float* factors = row_factors(loops, s, a.dropout, row, uint32_t(at.head + 1), seen);
      loops.softmax_gradient(seen, tile.seen, at.scale(), a.lse.row<float>(row)[at.head],
                             loops.dot(at.d, dy.row(i), y.row(i)), factors, p.row(i), ds.row(i));
    }
    loops.set_product(rows_of(a.dq), ds, k.rows_at(0, tile.seen));
    loops.accumulate_product(dk.rows_at(0, tile.seen), ds.transposed(), q);
    loops.accumulate_product(dv.rows_at(0, tile.seen), p.transposed(), dy);
  });
}

}  // namespace

void attention_forward(HostContext& context, const AttentionForward& a) {
  for_each_head(
      context, a.queries, a.keys, a.heads, a.y.cols / a.heads,
      [&, &loops = simd()](Scratch& s, const Head& at) { head_forward(loops, s, a, at); });
}

void attention_backward(HostContext& context, const AttentionBackward& a) {
  for_each_head(
      context, a.queries, a.keys, a.heads, a.dy.cols / a.heads,
      [&, &loops = simd()](Scratch& s, const Head& at) { head_backward(loops, s, a, at); });
}

}  // namespace fathom::kernels::cpu
