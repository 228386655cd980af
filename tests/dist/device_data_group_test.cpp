// A device that brings collectives of its own, and whose memory the host cannot reach: the exchange
// does not go through the communicator.
#include <gtest/gtest.h>

#include "data_group_checks.h"
#include "expect_error.h"
#include "rank_threads.h"

namespace fathom::dist {
namespace {

std::unique_ptr<Device> open_device() {
  return tensor::open_device_library(DEVICE_LIBRARY, {.threads = 1});
}

class DeviceDataGroup : public ::testing::TestWithParam<int> {};

TEST_P(DeviceDataGroup, PerformsEveryOperationOnBothKindsOfContext) {
  run_ranks(GetParam(), [](Communicator& communicator) {
    expect_every_data_operation_of(*open_device(), communicator);
  });
}

// Values beyond one window of the test device's memory, on several groups that live side by side.
TEST_P(DeviceDataGroup, MovesLongTensors) {
  run_ranks(GetParam(), [](Communicator& communicator) {
    const std::unique_ptr<Device> device = open_device();
    const auto first = make_data_group(communicator, *device),
               second = make_data_group(communicator, *device);
    for (DataGroup* const group : {first.get(), second.get(), first.get()}) {
      expect_sums<float>(device->compute(), *group, 5000);
      expect_scattered_sums<double>(device->compute(), *group, 5000);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, DeviceDataGroup, ::testing::Values(1, 2, 3, 4));

TEST(DeviceDataGroup, ChecksBeforeTheDeviceSeesIt) {
  const auto communicator = std::move(make_local_group(1).front());
  const std::unique_ptr<Device> device = open_device();
  Context& context = device->compute();
  const auto group = make_data_group(*communicator, *device);
  const Tensor good = context.allocate(4, 4, DType::kF32),
               bf16 = context.allocate(4, 4, DType::kBF16);

  expect_error<InvalidArgument>([&] { group->all_reduce_sum(context, bf16); },
                                {"expected contiguous f32 or f64"});
  for (const std::vector<int64_t>& counts : {std::vector<int64_t>{}, {8}, {16, 0}, {-1}, {8, 8}}) {
    expect_error<InvalidArgument>([&] { group->all_gather(context, good, counts, good); },
                                  {"all_gather: the counts of ", "do not fit"});
    expect_error<InvalidArgument>([&] { group->reduce_scatter_sum(context, good, counts, good); },
                                  {"reduce_scatter_sum: the counts of ", "do not fit"});
    expect_error<InvalidArgument>(
        [&] { group->all_to_all(context, good, counts, good, std::vector<int64_t>{16}); },
        {"all_to_all: the counts of ", "do not fit"});
  }
}

TEST(DeviceDataGroup, IsWhatADeviceOutOfReachOfTheHostNeeds) {
  const auto communicator = std::move(make_local_group(1).front());
  const std::unique_ptr<Device> device = open_device();
  EXPECT_EQ(device->info().is_host_accessible, 0);
  const Tensor t = device->compute().allocate(1, 1, DType::kF32);

  expect_error<DeviceError>(
      [&] { make_host_data_group(*communicator)->all_reduce_sum(device->compute(), t); },
      {"host functions cannot reach the memory of this device"});
}

}  // namespace
}  // namespace fathom::dist
