// The cpu device: f32, threaded, OpenBLAS for matrix products. Every kernel is tested against the
// reference; loops are cut by shape alone (see ThreadPool). What is not here is the reference's.
#pragma once

#include "core/kernels/host_context.h"

namespace fathom::kernels::cpu {

void linear_forward(HostContext&, const LinearForward&);
void linear_backward(HostContext&, const LinearBackward&);
void layer_norm_forward(HostContext&, const LayerNormForward&);
void layer_norm_backward(HostContext&, const LayerNormBackward&);
void embedding_forward(HostContext&, const EmbeddingForward&);
void embedding_backward(HostContext&, const EmbeddingBackward&);
void add_scaled(HostContext&, const AddScaled&);
void fill(HostContext&, const Fill&);
void add_weighted(HostContext&, const AddWeighted&);
void weight_gradient(HostContext&, const WeightGradient&);
void scale_columns(HostContext&, const ScaleColumns&);
void scale_columns_backward(HostContext&, const ScaleColumnsBackward&);
void gelu_forward(HostContext&, const GeluForward&);
void gelu_backward(HostContext&, const GeluBackward&);
void attention_forward(HostContext&, const AttentionForward&);
void attention_backward(HostContext&, const AttentionBackward&);
void cross_entropy(HostContext&, const CrossEntropy&);
void squared_norms(HostContext&, const SquaredNorms&);
void count_values(HostContext&, const CountValues&);
void adam(HostContext&, const Adam&);
void update_norms(HostContext&, const UpdateNorms&);

}  // namespace fathom::kernels::cpu
