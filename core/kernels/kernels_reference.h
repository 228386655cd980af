// The reference device: plain loops, double accumulation, f32 and f64. Slow, obvious, always built:
// what a kernel is supposed to compute is what stands here.
#pragma once

#include "core/kernels/kernels.h"

namespace fathom::kernels::reference {

void linear_forward(ThreadPool&, const LinearForward&);
void linear_backward(ThreadPool&, const LinearBackward&);
void layer_norm_forward(ThreadPool&, const LayerNormForward&);
void layer_norm_backward(ThreadPool&, const LayerNormBackward&);
void embedding_forward(ThreadPool&, const EmbeddingForward&);
void embedding_backward(ThreadPool&, const EmbeddingBackward&);
void add_scaled(ThreadPool&, const AddScaled&);
void gelu_forward(ThreadPool&, const GeluForward&);
void gelu_backward(ThreadPool&, const GeluBackward&);
void attention_forward(ThreadPool&, const AttentionForward&);
void attention_backward(ThreadPool&, const AttentionBackward&);
void cross_entropy(ThreadPool&, const CrossEntropy&);

}  // namespace fathom::kernels::reference
