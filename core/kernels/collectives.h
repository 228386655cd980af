// A device's own exchange with the devices of other ranks (NCCL), part of its table. A device whose
// memory the host can reach leaves all of it null: the ranks then exchange through host functions.
#pragma once

#include <cstdint>

#include "core/kernels/dtype.h"
#include "core/kernels/handles.h"

namespace fathom::kernels {

inline constexpr uint64_t kGroupIdBytes = 128;  // those of NCCL's ncclUniqueId

// All ranks make the same calls for a group, in the same order. Operations are queued on a context
// of the device that joined and happen in its order; counts are elements and read before the call
// returns. Failures are reported as by the other functions of the table.
struct Collectives {
  // Makes the name of a new group. One rank asks for it and hands it to the others.
  Status (*name_group)(DeviceHandle*, char* id);  // kGroupIdBytes
  // Returns when all `ranks` have joined.
  Status (*join_group)(DeviceHandle*, const char* id, int32_t rank, int32_t ranks,
                       GroupHandle** out);
  void (*leave_group)(GroupHandle*);  // after all it was given is done; waits for no other rank

  // In place. In which order the ranks are added is the device's choice, but all get the same bits.
  Status (*all_reduce_sum)(ContextHandle*, GroupHandle*, DType, void* values, int64_t count);
  // (sum of counts) -> (counts[rank]): the sum of part `rank`.
  Status (*reduce_scatter_sum)(ContextHandle*, GroupHandle*, DType, const void* values,
                               const int64_t* counts, void* part);
  // (counts[rank]) -> (sum of counts): part k comes from rank k. Also of bf16; the others are called
  // with f32 and f64.
  Status (*all_gather)(ContextHandle*, GroupHandle*, DType, const void* mine, const int64_t* counts,
                       void* all);
  // Part k of `send` goes to rank k, part k of `receive` comes from rank k.
  Status (*all_to_all)(ContextHandle*, GroupHandle*, DType, const void* send,
                       const int64_t* send_counts, void* receive, const int64_t* receive_counts);
};

}  // namespace fathom::kernels
