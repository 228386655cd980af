#include <array>
#include <string>

#include "core/base/error.h"
#include "dist/data_group.h"

namespace fathom::dist {
namespace {

using kernels::Collectives;

class DeviceDataGroup final : public DataGroup {
 public:
  DeviceDataGroup(Communicator& communicator, Device& device)
      : DataGroup(communicator.rank(), communicator.size()),
        collectives_(device.table().collectives) {
    // Rank 0's failure is told with the name, for its peers would wait for it.
    std::string id(kernels::kGroupIdBytes, '\0'), failure;
    if (rank() == 0 && collectives_.name_group(device.handle(), id.data()) != kernels::kOk)
      failure = device.table().last_error(device.handle());
    communicator.broadcast(failure, 0);
    require<DeviceError>(failure.empty(), device.name(), ": no group of ranks: ", failure);
    communicator.broadcast(id, 0);
    device.compute().check(
        collectives_.join_group(device.handle(), id.data(), rank(), size(), &group_));
  }
  ~DeviceDataGroup() override { collectives_.leave_group(group_); }

 private:
  void do_all_reduce_sum(Context& context, const Tensor& values) override {
    context.check(collectives_.all_reduce_sum(context.handle(), group_, values.dtype(),
                                              values.address(), values.numel()));
  }
  void do_reduce_scatter_sum(Context& context, const Tensor& values, Counts counts,
                             const Tensor& part) override {
    context.check(collectives_.reduce_scatter_sum(context.handle(), group_, values.dtype(),
                                                  values.address(), counts.data(), part.address()));
  }
  void do_all_gather(Context& context, const Tensor& mine, Counts counts,
                     const Tensor& all) override {
    context.check(collectives_.all_gather(context.handle(), group_, mine.dtype(), mine.address(),
                                          counts.data(), all.address()));
  }
  void do_all_to_all(Context& context, const Tensor& send, Counts send_counts,
                     const Tensor& receive, Counts receive_counts) override {
    context.check(collectives_.all_to_all(context.handle(), group_, send.dtype(), send.address(),
                                          send_counts.data(), receive.address(),
                                          receive_counts.data()));
  }

  const Collectives& collectives_;
  kernels::GroupHandle* group_ = nullptr;
};

}  // namespace

std::unique_ptr<DataGroup> make_device_data_group(Communicator& communicator, Device& device) {
  return std::make_unique<DeviceDataGroup>(communicator, device);
}

}  // namespace fathom::dist
