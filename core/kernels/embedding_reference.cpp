#include "core/kernels/kernels_reference.h"

namespace fathom::kernels::reference {

void embedding_forward(ThreadPool&, const EmbeddingForward& a) {
  visit_float(a.y.dtype(), [&]<class T>() {
    const int64_t C = a.y.cols();
    for (int64_t t = 0; t < a.y.rows(); ++t)
      for (int64_t c = 0; c < C; ++c)
        a.y.row<T>(t)[c] = T((a.scale * double(a.table.row<T>(a.tokens[size_t(t)])[c]) +
                              double(a.sinusoids.row<T>(a.positions[size_t(t)])[c])) *
                             a.dropout.factor(t, c));
  });
}

void embedding_backward(ThreadPool&, const EmbeddingBackward& a) {
  visit_float(a.dy.dtype(), [&]<class T>() {
    for (int64_t t = 0; t < a.dy.rows(); ++t)
      for (int64_t c = 0; c < a.dy.cols(); ++c)
        a.dtable.row<T>(a.tokens[size_t(t)])[c] +=
            T(a.scale * double(a.dy.row<T>(t)[c]) * a.dropout.factor(t, c));
  });
}

}  // namespace fathom::kernels::reference
