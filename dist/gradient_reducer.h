// Sums the gradients of one step over all V virtual shards of the batch and all ranks, in buckets,
// while backward of the last shard is still running. Every rank ends with the sum of the slices it
// owns (ownership.h), or with the whole of it, the same bits on every rank. In tree mode they are
// the same for every number of ranks, ownership and order of ready().
//
//   for each shard of this rank, in order:
//     const Tensor gradient = reducer.begin_shard();   // backward adds into it, and calls
//     reducer.ready(offset, count);                    // when a parameter is final (optional)
//     reducer.end_shard();
//   const GradientSum sum = reducer.finish();          // valid until the next begin_shard()
//
// Every rank begins and ends each shard it owns (reduction_tree.h), an empty one too: it counts as
// zeros. Nothing here waits: all is queued on the device's contexts, and with overlap buckets are
// reduced on the communication context, which waits for an event of the compute context after the
// last kernel that wrote to the bucket.
//
// Memory: tree keeps one buffer of P per partial sum alive, buffers_needed() of them, about
// log2(V/N) + 1; fast one. With more than one rank, one bucket is also staged: in tree mode its
// received partials (about one bucket) and, where a rank ends with m > 1 partials, m buckets to
// send; in fast mode what the rank owns of it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/tensor/device.h"
#include "dist/communicator.h"
#include "dist/ownership.h"
#include "dist/reducer_options.h"

namespace fathom::dist {

// What a reducer allocates on a rank, in elements.
struct ReducerMemory {
  int64_t buffers = 0;  // of P each
  int64_t staging = 0;
};
[[nodiscard]] ReducerMemory reducer_memory(const ReducerOptions& options,
                                           const Ownership& ownership, int rank);

struct GradientSum {
  Tensor gradient;               // (1, P)
  std::span<const Slice> owned;  // where it is the sum; elsewhere it is undefined
};

class GradientReducer {
 public:
  // Collective. P = ownership.count(), of `dtype`. The group and the device must outlive the
  // reducer; while it lives the group may be used for other calls between steps (and, with overlap,
  // at any time). InvalidArgument for options out of range, DeviceError if memory does not suffice.
  GradientReducer(Communicator& group, Device& device, const ReducerOptions& options,
                  const Ownership& ownership, DType dtype);
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;
  ~GradientReducer();

  // (1, P), to be added into on the compute context. Zeros in tree mode; in fast mode zeros for the
  // first shard of the step, then the sum so far. fast may take several of the rank's shards in one
  // backward: `fused` is their number.
  [[nodiscard]] Tensor begin_shard(int fused = 1);

  // Elements [offset, offset + count) of the open shard are final once the compute context has done
  // the work queued so far. Ranges may come in any order, each element once; calls in any but the
  // rank's last shard are ignored.
  void ready(int64_t offset, int64_t count);

  void end_shard();

  // The sum over all V shards, for work queued on the compute context from now on.
  // Collective. Buckets that are not final yet are reduced now. Throws an error of the reductions
  // that is known by then; after an error the reducer cannot be used.
  [[nodiscard]] GradientSum finish();

  // Of the last step, once the compute context has passed finish(): how long it waited there, and
  // how long the reductions took on whichever context. The second minus the first is what overlap
  // has hidden.
  [[nodiscard]] double wait_seconds() const;
  [[nodiscard]] double reduce_seconds() const;

  [[nodiscard]] int64_t memory_bytes() const;  // of the buffers of P

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fathom::dist
