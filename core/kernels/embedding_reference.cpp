#include "core/kernels/kernels_reference.h"

namespace fathom::kernels::reference {

void embedding_forward(HostContext&, const EmbeddingForward& a) {
  visit_float(a.y.dtype, [&]<class T>() {
    using A = Arithmetic<T>;
    const int64_t C = a.y.cols;
    for (int64_t t = 0; t < a.y.rows; ++t) {
      const T* word = a.table.row<T>(a.tokens.as<int32_t>()[t]);
      const Wide<T>* place = a.sinusoids.row<Wide<T>>(a.positions.as<int32_t>()[t]);
      for (int64_t c = 0; c < C; ++c)
        a.y.row<T>(t)[c] = T((A(a.scale) * A(word[c]) + A(place[c])) * A(a.dropout.factor(t, c)));
    }
  });
}

void embedding_backward(HostContext&, const EmbeddingBackward& a) {
  visit_float(a.dy.dtype, [&]<class T>() {
    using A = Arithmetic<T>;
    using W = Wide<T>;
    for (int64_t t = 0; t < a.dy.rows; ++t)
      for (int64_t c = 0; c < a.dy.cols; ++c)
        a.dtable.row<W>(a.tokens.as<int32_t>()[t])[c] +=
            W(A(a.scale) * A(a.dy.row<T>(t)[c]) * A(a.dropout.factor(t, c)));
  });
}

}  // namespace fathom::kernels::reference
