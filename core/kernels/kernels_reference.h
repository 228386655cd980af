// The reference device: plain loops, f64 arithmetic (f32 for bf16), one rounding a store. Slow,
// obvious, always built: what a kernel is supposed to compute is what stands here.
#pragma once

#include "core/kernels/host_context.h"

namespace fathom::kernels::reference {

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
void append_rows(HostContext&, const AppendRows&);
void gather_rows(HostContext&, const GatherRows&);
void top_k(HostContext&, const TopK&);
void squared_norms(HostContext&, const SquaredNorms&);
void count_values(HostContext&, const CountValues&);
void sum_chunks(HostContext&, const SumChunks&);
void sum_losses(HostContext&, const SumLosses&);
void row_moments(HostContext&, const RowMoments&);
void step_control(HostContext&, const StepControl&);
void adam(HostContext&, const Adam&);
void update_norms(HostContext&, const UpdateNorms&);

}  // namespace fathom::kernels::reference
