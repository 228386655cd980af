// The data plane: exchange of tensors between ranks. Every operation is queued on a context and
// happens in its order; the host does not wait. All ranks make the same calls in the same order
// with matching counts. The control plane (strings, agreement, abort) is communicator.h.
#pragma once

#include <memory>
#include <span>

#include "core/tensor/context.h"
#include "dist/communicator.h"

namespace fathom::dist {

class DataGroup {
 public:
  virtual ~DataGroup() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  // Contiguous tensors of f32 or f64. In place; which bits depends on the number of ranks.
  virtual void all_reduce_sum(Context& context, const Tensor& values) = 0;
  // (sum of counts) -> (counts[rank]): the sum of part `rank`. The two do not overlap.
  virtual void reduce_scatter_sum(Context& context, const Tensor& values, Counts counts,
                                  const Tensor& part) = 0;
  // (counts[rank]) -> (sum of counts): part k comes from rank k. The two do not overlap.
  virtual void all_gather(Context& context, const Tensor& mine, Counts counts,
                          const Tensor& all) = 0;
  // Part k of `send` goes to rank k, part k of `receive` comes from rank k.
  virtual void all_to_all(Context& context, const Tensor& send, Counts send_counts,
                          const Tensor& receive, Counts receive_counts) = 0;
};

// Through a communicator, for devices whose memory the host can reach. The calls are made where the
// context runs, so a context with a thread of its own needs a communicator of its own, which
// outlives the group, as the group outlives the work queued with it.
[[nodiscard]] std::unique_ptr<DataGroup> make_host_data_group(Communicator& communicator);

}  // namespace fathom::dist
