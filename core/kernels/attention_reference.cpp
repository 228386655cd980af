#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/kernels/kernels_reference.h"

namespace fathom::kernels::reference {
namespace {

// One query row of one head: its sentence, the keys it sees, and its weights on them.
struct Query {
  int64_t row, first_key, keys, head, index;  // `index` within the sentence
};

template <class F>
void for_each_query(const Segments& queries, const Segments& keys, int64_t heads, bool causal,
                    const F& f) {
  for (int64_t n = 0; n < queries.count; ++n) {
    const int64_t length = queries.length[n], key_count = keys.length[n];
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < length; ++i)
        f(Query{.row = queries.begin[n] + i,
                .first_key = keys.begin[n],
                .keys = causal ? std::min(i + 1, key_count) : key_count,
                .head = h,
                .index = i});
  }
}

template <class T>
std::vector<Arithmetic<T>> scores(const Matrix& q, const Matrix& k, const Query& at, int64_t d) {
  using A = Arithmetic<T>;
  std::vector<A> s(size_t(at.keys), A(0));
  const T* qi = q.row<T>(at.row) + at.head * d;
  for (int64_t j = 0; j < at.keys; ++j) {
    const T* kj = k.row<T>(at.first_key + j) + at.head * d;
    for (int64_t c = 0; c < d; ++c) s[size_t(j)] += A(qi[c]) * A(kj[c]);
    s[size_t(j)] /= std::sqrt(A(d));
  }
  return s;
}

double kept(const Dropout& dropout, const Query& at, int64_t key) {
  return dropout.factor(at.row, key, uint32_t(at.head + 1));
}

}  // namespace

void attention_forward(HostContext&, const AttentionForward& a) {
  visit_float(a.y.dtype, [&]<class T>() {
    using A = Arithmetic<T>;
    const int64_t d = a.y.cols / a.heads;
    for_each_query(a.queries, a.keys, a.heads, a.causal, [&](const Query& at) {
      const std::vector<A> s = scores<T>(a.q, a.k, at, d);
      A largest = -std::numeric_limits<A>::infinity(), denominator = 0;
      for (const A v : s) largest = std::max(largest, v);
      for (const A v : s) denominator += std::exp(v - largest);
      const A lse = largest + std::log(denominator);
      if (!a.lse.is_empty()) a.lse.row<Wide<T>>(at.row)[at.head] = Wide<T>(lse);
      for (int64_t c = 0; c < d; ++c) {
        A sum = 0;
        for (int64_t j = 0; j < at.keys; ++j)
          sum += std::exp(s[size_t(j)] - lse) * A(kept(a.dropout, at, j)) *
                 A(a.v.row<T>(at.first_key + j)[at.head * d + c]);
        a.y.row<T>(at.row)[at.head * d + c] = T(sum);
      }
    });
  });
}

// With p = softmax(s), m the dropout factors, y = (p m) v:
//   dv_j = sum_i p_ij m_ij dy_i      dp_ij = m_ij (dy_i . v_j)
//   ds_ij = p_ij (dp_ij - sum_j' p_ij' dp_ij'),  the sum being dy_i . y_i
//   dq_i = sum_j ds_ij k_j / sqrt d   dk_j = sum_i ds_ij q_i / sqrt d
void attention_backward(HostContext&, const AttentionBackward& a) {
  visit_float(a.dy.dtype, [&]<class T>() {
    using A = Arithmetic<T>;
    const int64_t d = a.dy.cols / a.heads;
    const A scale = 1 / std::sqrt(A(d));
    std::vector<A> dk(size_t(a.dk.rows * a.dk.cols)), dv(dk.size());
    const int64_t C = a.dk.cols;
    for_each_query(a.queries, a.keys, a.heads, a.causal, [&](const Query& at) {
      const int64_t column = at.head * d;
      const std::vector<A> s = scores<T>(a.q, a.k, at, d);
      const A lse = A(a.lse.row<Wide<T>>(at.row)[at.head]);
      const T* dy = a.dy.row<T>(at.row) + column;
      A dy_y = 0;
      for (int64_t c = 0; c < d; ++c) dy_y += A(dy[c]) * A(a.y.row<T>(at.row)[column + c]);

      std::vector<A> dq(size_t(d), A(0));
      for (int64_t j = 0; j < at.keys; ++j) {
        const A p = std::exp(s[size_t(j)] - lse), m = A(kept(a.dropout, at, j));
        const size_t key = size_t((at.first_key + j) * C + column);
        A dp = 0;
        for (int64_t c = 0; c < d; ++c) {
          dv[key + size_t(c)] += p * m * A(dy[c]);
          dp += m * A(dy[c]) * A(a.v.row<T>(at.first_key + j)[column + c]);
        }
        const A ds = p * (dp - dy_y) * scale;
        for (int64_t c = 0; c < d; ++c) {
          dq[size_t(c)] += ds * A(a.k.row<T>(at.first_key + j)[column + c]);
          dk[key + size_t(c)] += ds * A(a.q.row<T>(at.row)[column + c]);
        }
      }
      for (int64_t c = 0; c < d; ++c) a.dq.row<T>(at.row)[column + c] = T(dq[size_t(c)]);
    });
    for (int64_t r = 0; r < a.dk.rows; ++r) {
      for (int64_t c = 0; c < C; ++c) {
        a.dk.row<T>(r)[c] = T(dk[size_t(r * C + c)]);
        a.dv.row<T>(r)[c] = T(dv[size_t(r * C + c)]);
      }
    }
  });
}

}  // namespace fathom::kernels::reference
