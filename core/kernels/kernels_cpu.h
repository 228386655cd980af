// The cpu device: f32, threaded, OpenBLAS for matrix products. Every kernel is tested against the
// reference; loops are cut by shape alone (see ThreadPool).
#pragma once

#include "core/kernels/kernels.h"

namespace fathom::kernels::cpu {

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

}  // namespace fathom::kernels::cpu
