// Gathers what each rank has computed for the slices it owns (ownership.h). Every call is
// collective and queued on the given context; the host does not wait.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/tensor/device.h"
#include "dist/data_group.h"
#include "dist/ownership.h"

namespace fathom::dist {

class SliceGather {
 public:
  // Collective. For flat buffers of `dtype`. The context and the ownership outlive it.
  SliceGather(Communicator& group, Context& context, const Ownership& ownership, DType dtype);

  // flat (1, P): all ranks get every slice from its owner.
  void gather(const Tensor& flat);

  // The same from a compact buffer, the rank's slices one after the other.
  void gather(const Tensor& compact, const Tensor& flat);

  // A row for each chunk: from those that this rank owns, in the order of Ownership::chunks_of, to
  // all in the order of the table.   own (n, F), all (N, F) f64, F = 1 or 2
  void gather_chunks(const Tensor& own, const Tensor& all);

  // From a compact buffer to the host, bucket by bucket.
  // `flat`, of a HostBuffer, has P elements, or none on a rank that does not want them.
  void gather_to_host(const Tensor& compact, std::span<std::byte> flat);

 private:
  const Ownership& ownership_;
  Context& context_;
  DType dtype_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<DataGroup> data_;
  std::vector<int64_t> chunk_counts_;  // by rank
  Tensor part_;                        // what this rank owns of a bucket, out of its place
  Tensor bucket_;                      // a whole one on its way to the host
  Tensor rows_, order_;                // (1, 2 N) f64 in rank order; (1, N) i32 their places
};

}  // namespace fathom::dist
