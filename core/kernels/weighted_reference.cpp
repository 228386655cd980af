#include "core/kernels/kernels_reference.h"

namespace fathom::kernels::reference {

void add_weighted(HostContext&, const AddWeighted& a) {
  const double w = load(a.weights, 0, a.index);
  for (int64_t t = 0; t < a.y.rows; ++t)
    for (int64_t c = 0; c < a.y.cols; ++c)
      store(a.y, t, c, (a.accumulate ? load(a.y, t, c) : 0) + w * load(a.x, t, c));
}

void weight_gradient(HostContext&, const WeightGradient& a) {
  double sum = 0;
  for (int64_t t = 0; t < a.x.rows; ++t)
    for (int64_t c = 0; c < a.x.cols; ++c) sum += load(a.dy, t, c) * load(a.x, t, c);
  store(a.dweights, 0, a.index, load(a.dweights, 0, a.index) + sum);
}

void scale_columns(HostContext&, const ScaleColumns& a) {
  for (int64_t t = 0; t < a.y.rows; ++t)
    for (int64_t c = 0; c < a.y.cols; ++c) store(a.y, t, c, load(a.x, t, c) * load(a.gain, 0, c));
}

void scale_columns_backward(HostContext&, const ScaleColumnsBackward& a) {
  for (int64_t c = 0; c < a.dx.cols; ++c) {
    double sum = 0;
    for (int64_t t = 0; t < a.dx.rows; ++t) {
      sum += load(a.dy, t, c) * load(a.x, t, c);
      store(a.dx, t, c, load(a.dy, t, c) * load(a.gain, 0, c));
    }
    store(a.dgain, 0, c, load(a.dgain, 0, c) + sum);
  }
}

}  // namespace fathom::kernels::reference
