// The boundary of a device: versioned plain data and C functions. A device, built in or in a shared
// library of its own (`libfathom_cuda.so`), fills one DeviceTable; `core/tensor/device.h` is what
// the rest of the program sees of it. No owner, container, virtual call, exception or symbol of
// ours crosses it.
//
// Conventions, for all kernels:
//   activations are matrices (T, C), one packed real token per row;
//   gradients of parameters are accumulated (dw += ...), those of activations are written;
//   an empty matrix means "absent" (no bias) or "not wanted" (no dx);
//   a row's result depends on that row (and its sentence) alone, bit for bit, when
//   `batch_invariant` is set; without it it may depend on the number of rows, never on threads;
//   arguments are read before the call returns, the matrices when the context comes to it.
#pragma once

#include <cstdint>

#include "core/kernels/adam.h"
#include "core/kernels/attention.h"
#include "core/kernels/collectives.h"
#include "core/kernels/cross_entropy.h"
#include "core/kernels/elementwise.h"
#include "core/kernels/embedding.h"
#include "core/kernels/handles.h"
#include "core/kernels/layer_norm.h"
#include "core/kernels/linear.h"
#include "core/kernels/rows.h"
#include "core/kernels/statistics.h"
#include "core/kernels/weighted.h"

namespace fathom::kernels {

template <class Args>
using Kernel = Status (*)(ContextHandle*, const Args*);

struct Kernels {
  Kernel<LinearForward> linear_forward;
  Kernel<LinearBackward> linear_backward;
  Kernel<LayerNormForward> layer_norm_forward;
  Kernel<LayerNormBackward> layer_norm_backward;
  Kernel<EmbeddingForward> embedding_forward;
  Kernel<EmbeddingBackward> embedding_backward;
  Kernel<AddScaled> add_scaled;
  Kernel<Fill> fill;
  Kernel<AddWeighted> add_weighted;
  Kernel<WeightGradient> weight_gradient;
  Kernel<ScaleColumns> scale_columns;
  Kernel<ScaleColumnsBackward> scale_columns_backward;
  Kernel<GeluForward> gelu_forward;
  Kernel<GeluBackward> gelu_backward;
  Kernel<AttentionForward> attention_forward;
  Kernel<AttentionBackward> attention_backward;
  Kernel<CrossEntropy> cross_entropy;
  Kernel<AppendRows> append_rows;
  Kernel<GatherRows> gather_rows;
  Kernel<TopK> top_k;
  Kernel<SquaredNorms> squared_norms;
  Kernel<CountValues> count_values;
  Kernel<SumChunks> sum_chunks;
  Kernel<SumLosses> sum_losses;
  Kernel<RowMoments> row_moments;
  Kernel<StepControl> step_control;
  Kernel<Adam> adam;
  Kernel<UpdateNorms> update_norms;
};

// Calls f(name, &Kernels::member) for every kernel of the table.
template <class F>
void for_each_kernel(const F& f) {
  f("linear_forward", &Kernels::linear_forward);
  f("linear_backward", &Kernels::linear_backward);
  f("layer_norm_forward", &Kernels::layer_norm_forward);
  f("layer_norm_backward", &Kernels::layer_norm_backward);
  f("embedding_forward", &Kernels::embedding_forward);
  f("embedding_backward", &Kernels::embedding_backward);
  f("add_scaled", &Kernels::add_scaled);
  f("fill", &Kernels::fill);
  f("add_weighted", &Kernels::add_weighted);
  f("weight_gradient", &Kernels::weight_gradient);
  f("scale_columns", &Kernels::scale_columns);
  f("scale_columns_backward", &Kernels::scale_columns_backward);
  f("gelu_forward", &Kernels::gelu_forward);
  f("gelu_backward", &Kernels::gelu_backward);
  f("attention_forward", &Kernels::attention_forward);
  f("attention_backward", &Kernels::attention_backward);
  f("cross_entropy", &Kernels::cross_entropy);
  f("append_rows", &Kernels::append_rows);
  f("gather_rows", &Kernels::gather_rows);
  f("top_k", &Kernels::top_k);
  f("squared_norms", &Kernels::squared_norms);
  f("count_values", &Kernels::count_values);
  f("sum_chunks", &Kernels::sum_chunks);
  f("sum_losses", &Kernels::sum_losses);
  f("row_moments", &Kernels::row_moments);
  f("step_control", &Kernels::step_control);
  f("adam", &Kernels::adam);
  f("update_norms", &Kernels::update_norms);
}

struct DeviceOptions {
  int32_t threads = 1;  // cpu
  int32_t index = 0;    // cuda: which of the machine's
};

struct DeviceInfo {
  const char* name = "";       // "cpu"; valid while the device lives
  const char* numerics = "";   // what decides the bits of a result: library, instruction set, tiles
  uint32_t compute_types = 0;  // bit 1 << DType for each type it computes in
  int32_t is_host_accessible = 0;  // host functions may touch its memory, see `call`
  uint64_t memory_total = 0, memory_used = 0, memory_free = 0;  // bytes
};

// A context is a queue in which everything happens in the order of the calls: compute, or one that
// runs beside it (communication, copy). Between contexts only events order anything.
enum class ContextKind : int32_t { kCompute = 0, kCommunication = 1, kCopy = 2 };

inline constexpr uint32_t kDeviceTableVersion = 3;

// Every function may be called from one thread at a time, release() from host functions besides.
// Those that return a Status leave the text of a failure in last_error(). A failure inside a queue
// arrives at a later call on it.
struct DeviceTable {
  uint32_t version = kDeviceTableVersion;
  uint32_t bytes = sizeof(DeviceTable);

  Status (*create)(const DeviceOptions*, DeviceHandle** out);
  void (*destroy)(DeviceHandle*);
  Status (*info)(DeviceHandle*, DeviceInfo* out);
  // FLOP/s in matrix products of this type at most; may be measured, then the best of about 20 ms.
  Status (*peak_flops)(DeviceHandle*, DType, double* out);
  const char* (*last_error)(DeviceHandle*);  // null: of create()

  Status (*create_context)(DeviceHandle*, ContextKind, ContextHandle** out);
  void (*destroy_context)(ContextHandle*);  // after all it was given is done

  // Memory belongs to the context it was allocated on and is released in that context's order:
  // whoever used it elsewhere makes this context wait first. Contents are undefined.
  Status (*allocate)(ContextHandle*, uint64_t bytes, void** out);
  Status (*release)(ContextHandle*, void*);
  // Contents are undefined from here on. May be null.
  Status (*discard)(ContextHandle*, void*, uint64_t bytes);
  // Host memory that copies to and from the device may use while the host goes on.
  Status (*allocate_staging)(DeviceHandle*, uint64_t bytes, void** out);
  void (*release_staging)(DeviceHandle*, void*);

  // `from` is staging memory, to be left alone until an event recorded afterwards is done.
  Status (*upload)(ContextHandle*, void* to, const void* from, uint64_t bytes);
  Status (*copy)(ContextHandle*, void* to, const void* from, uint64_t bytes);  // on the device
  // `to` is host memory, written when the context comes to it. Staging memory, if the host is not
  // to wait for it at once.
  Status (*download)(ContextHandle*, void* to, const void* from, uint64_t bytes);

  Status (*record)(ContextHandle*, EventHandle** out);  // done when all before it is
  Status (*wait)(ContextHandle*, EventHandle*);         // what follows comes after the event
  Status (*is_done)(EventHandle*, int32_t* out);        // never waits
  Status (*elapsed)(EventHandle* from, EventHandle* to, double* seconds);  // both are done
  void (*destroy_event)(EventHandle*);
  Status (*synchronise)(ContextHandle*);  // waits

  // f(argument, 1) in the context's order, on whatever thread; f(argument, 0) if it will never be
  // run. With is_host_accessible it may read and write the device's memory. Not kOk fails the
  // context, and whoever waits for an event of it, with that status. Null on a device whose memory
  // the host cannot reach.
  Status (*call)(ContextHandle*, Status (*f)(void*, int32_t), void* argument);

  Kernels kernels;
  Collectives collectives;
};

// What a device library exports under this name; null where it does not know the version.
inline constexpr const char* kDeviceEntryPoint = "fathom_device_table";
using DeviceEntryPoint = const DeviceTable* (*)(uint32_t version);

}  // namespace fathom::kernels
