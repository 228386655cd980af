#include "core/kernels/kernels_reference.h"

namespace fathom::kernels::reference {

Kernels kernels() {
  return {.linear_forward = linear_forward,
          .linear_backward = linear_backward,
          .layer_norm_forward = layer_norm_forward,
          .layer_norm_backward = layer_norm_backward,
          .embedding_forward = embedding_forward,
          .embedding_backward = embedding_backward,
          .add_scaled = add_scaled,
          .gelu_forward = gelu_forward,
          .gelu_backward = gelu_backward,
          .attention_forward = attention_forward,
          .attention_backward = attention_backward,
          .cross_entropy = cross_entropy};
}

}  // namespace fathom::kernels::reference
