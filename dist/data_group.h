// The data plane: exchange of tensors between ranks. Every operation is queued on a context and
// happens in its order; the host does not wait. All ranks make the same calls in the same order
// with matching counts. The control plane (strings, agreement, abort) is communicator.h.
// The rules are checked here once; the implementations only translate.
#pragma once

#include <memory>

#include "core/tensor/device.h"
#include "dist/communicator.h"

namespace fathom::dist {

// Contiguous tensors of f32 or f64, in all_gather also of bf16, of one type in each call.
// InvalidArgument for others and for counts that do not fit them.
class DataGroup {
 public:
  DataGroup(const DataGroup&) = delete;
  DataGroup& operator=(const DataGroup&) = delete;
  virtual ~DataGroup() = default;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

  // In place; which bits depends on the number of ranks.
  void all_reduce_sum(Context& context, const Tensor& values);
  // (sum of counts) -> (counts[rank]): the sum of part `rank`. The two do not overlap.
  void reduce_scatter_sum(Context& context, const Tensor& values, Counts counts,
                          const Tensor& part);
  // (counts[rank]) -> (sum of counts): part k comes from rank k. The two do not overlap.
  void all_gather(Context& context, const Tensor& mine, Counts counts, const Tensor& all);
  // Part k of `send` goes to rank k, part k of `receive` comes from rank k.
  void all_to_all(Context& context, const Tensor& send, Counts send_counts, const Tensor& receive,
                  Counts receive_counts);

 protected:
  DataGroup(int rank, int size) : rank_(rank), size_(size) {}

 private:
  virtual void do_all_reduce_sum(Context& context, const Tensor& values) = 0;
  virtual void do_reduce_scatter_sum(Context& context, const Tensor& values, Counts counts,
                                     const Tensor& part) = 0;
  virtual void do_all_gather(Context& context, const Tensor& mine, Counts counts,
                             const Tensor& all) = 0;
  virtual void do_all_to_all(Context& context, const Tensor& send, Counts send_counts,
                             const Tensor& receive, Counts receive_counts) = 0;

  int rank_, size_;
};

// Collective. Through the device's own collectives where it has some, else through the
// communicator. Both outlive the group, as the group outlives the work queued with it. Calls of the
// communicator are made where the context runs, so a context with a thread of its own needs a
// communicator of its own. DeviceError when the device cannot form the group.
[[nodiscard]] std::unique_ptr<DataGroup> make_data_group(Communicator& communicator,
                                                         Device& device);

// For devices whose memory the host can reach.
[[nodiscard]] std::unique_ptr<DataGroup> make_host_data_group(Communicator& communicator);
// For devices with collectives of their own (core/kernels/collectives.h). Collective.
[[nodiscard]] std::unique_ptr<DataGroup> make_device_data_group(Communicator& communicator,
                                                                Device& device);

}  // namespace fathom::dist
