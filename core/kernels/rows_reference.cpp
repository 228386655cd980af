#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/kernels/kernels_reference.h"

namespace fathom::kernels::reference {
namespace {

char* row_bytes(const Matrix& m, int64_t r) {
  return m.as<char>() + r * m.stride * size_of(m.dtype);
}

}  // namespace

void append_rows(HostContext&, const AppendRows& a) {
  const size_t bytes = size_t(a.from.cols * size_of(a.from.dtype));
  for (int64_t r = 0; r < a.from.rows; ++r)
    std::memcpy(row_bytes(a.to, a.index.as<int32_t>()[r]), row_bytes(a.from, r), bytes);
}

void gather_rows(HostContext&, const GatherRows& a) {
  const size_t bytes = size_t(a.to.cols * size_of(a.to.dtype));
  for (int64_t r = 0; r < a.to.rows; ++r)
    std::memcpy(row_bytes(a.to, r), row_bytes(a.from, a.index.as<int32_t>()[r]), bytes);
}

void top_k(HostContext&, const TopK& a) {
  visit_float(a.logits.dtype, [&]<class T>() {
    using A = Arithmetic<T>;
    const int64_t V = a.logits.cols, k = a.indices.cols;
    std::vector<int32_t> order(static_cast<size_t>(V));
    for (int64_t r = 0; r < a.logits.rows; ++r) {
      const T* z = a.logits.row<T>(r);
      const auto is_before = [z](int32_t u, int32_t v) {
        const A zu = A(z[u]), zv = A(z[v]);
        if (std::isnan(zu) != std::isnan(zv)) return std::isnan(zv);
        return zu > zv || (!(zu < zv) && u < v);
      };
      std::iota(order.begin(), order.end(), 0);
      if (k == 1)
        std::swap(order[0], *std::min_element(order.begin(), order.end(), is_before));
      else
        std::partial_sort(order.begin(), order.begin() + k, order.end(), is_before);
      for (int64_t i = 0; i < k; ++i) a.indices.row<int32_t>(r)[i] = order[size_t(i)];
      if (a.values.is_empty()) continue;
      const A largest = A(z[order[0]]);
      A denominator = 0;
      for (int64_t v = 0; v < V; ++v) denominator += std::exp(A(z[v]) - largest);
      const A lse = largest + std::log(denominator);
      for (int64_t i = 0; i < k; ++i)
        a.values.row<Wide<T>>(r)[i] = Wide<T>(A(z[order[size_t(i)]]) - lse);
    }
  });
}

}  // namespace fathom::kernels::reference
