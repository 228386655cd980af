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
  for (int64_t n = 0; n < queries.count(); ++n) {
    const int64_t length = queries.length[size_t(n)], key_count = keys.length[size_t(n)];
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < length; ++i)
        f(Query{.row = queries.begin[size_t(n)] + i,
                .first_key = keys.begin[size_t(n)],
                .keys = causal ? std::min(i + 1, key_count) : key_count,
                .head = h,
                .index = i});
  }
}

template <class T>
std::vector<double> scores(const Tensor& q, const Tensor& k, const Query& at, int64_t d) {
  std::vector<double> s(size_t(at.keys), 0.0);
  const T* qi = q.row<T>(at.row) + at.head * d;
  for (int64_t j = 0; j < at.keys; ++j) {
    const T* kj = k.row<T>(at.first_key + j) + at.head * d;
    for (int64_t c = 0; c < d; ++c) s[size_t(j)] += double(qi[c]) * double(kj[c]);
    s[size_t(j)] /= std::sqrt(double(d));
  }
  return s;
}

double kept(const Dropout& dropout, const Query& at, int64_t key) {
  return dropout.factor(at.row, key, uint32_t(at.head + 1));
}

}  // namespace

void attention_forward(ThreadPool&, const AttentionForward& a) {
  visit_float(a.y.dtype(), [&]<class T>() {
    const int64_t d = a.y.cols() / a.heads;
    for_each_query(*a.queries, *a.keys, a.heads, a.causal, [&](const Query& at) {
      const std::vector<double> s = scores<T>(a.q, a.k, at, d);
      double largest = -std::numeric_limits<double>::infinity(), denominator = 0;
      for (const double v : s) largest = std::max(largest, v);
      for (const double v : s) denominator += std::exp(v - largest);
      const double lse = largest + std::log(denominator);
      if (!a.lse.is_empty()) a.lse.row<T>(at.row)[at.head] = T(lse);
      for (int64_t c = 0; c < d; ++c) {
        double sum = 0;
        for (int64_t j = 0; j < at.keys; ++j)
          sum += std::exp(s[size_t(j)] - lse) * kept(a.dropout, at, j) *
                 double(a.v.row<T>(at.first_key + j)[at.head * d + c]);
        a.y.row<T>(at.row)[at.head * d + c] = T(sum);
      }
    });
  });
}

// With p = softmax(s), m the dropout factors, y = (p m) v:
//   dv_j = sum_i p_ij m_ij dy_i      dp_ij = m_ij (dy_i . v_j)
//   ds_ij = p_ij (dp_ij - sum_j' p_ij' dp_ij'),  the sum being dy_i . y_i
//   dq_i = sum_j ds_ij k_j / sqrt d   dk_j = sum_i ds_ij q_i / sqrt d
void attention_backward(ThreadPool&, const AttentionBackward& a) {
  visit_float(a.dy.dtype(), [&]<class T>() {
    const int64_t d = a.dy.cols() / a.heads;
    const double scale = 1 / std::sqrt(double(d));
    std::vector<double> dk(size_t(a.dk.rows() * a.dk.cols())), dv(dk.size());
    const int64_t C = a.dk.cols();
    for_each_query(*a.queries, *a.keys, a.heads, a.causal, [&](const Query& at) {
      const int64_t column = at.head * d;
      const std::vector<double> s = scores<T>(a.q, a.k, at, d);
      const double lse = double(a.lse.row<T>(at.row)[at.head]);
      const T* dy = a.dy.row<T>(at.row) + column;
      double dy_y = 0;
      for (int64_t c = 0; c < d; ++c)
        dy_y += double(dy[c]) * double(a.y.row<T>(at.row)[column + c]);

      std::vector<double> dq(size_t(d), 0.0);
      for (int64_t j = 0; j < at.keys; ++j) {
        const double p = std::exp(s[size_t(j)] - lse), m = kept(a.dropout, at, j);
        const size_t key = size_t((at.first_key + j) * C + column);
        double dp = 0;
        for (int64_t c = 0; c < d; ++c) {
          dv[key + size_t(c)] += p * m * double(dy[c]);
          dp += m * double(dy[c]) * double(a.v.row<T>(at.first_key + j)[column + c]);
        }
        const double ds = p * (dp - dy_y) * scale;
        for (int64_t c = 0; c < d; ++c) {
          dq[size_t(c)] += ds * double(a.k.row<T>(at.first_key + j)[column + c]);
          dk[key + size_t(c)] += ds * double(a.q.row<T>(at.row)[column + c]);
        }
      }
      for (int64_t c = 0; c < d; ++c) a.dq.row<T>(at.row)[column + c] = T(dq[size_t(c)]);
    });
    for (int64_t r = 0; r < a.dk.rows(); ++r) {
      for (int64_t c = 0; c < C; ++c) {
        a.dk.row<T>(r)[c] = T(dk[size_t(r * C + c)]);
        a.dv.row<T>(r)[c] = T(dv[size_t(r * C + c)]);
      }
    }
  });
}

}  // namespace fathom::kernels::reference
