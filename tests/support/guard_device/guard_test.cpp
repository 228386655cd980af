// The guard device detects the faults it is made for: each planted one changes the result under at
// least one schedule, and without faults all schedules give the cpu device's result. The product on
// it: tests/system/guard_test.py.
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensor/device.h"
#include "core/tensor/host_buffer.h"
#include "tests/support/expect_error.h"

namespace fathom::guard {
namespace {

using kernels::Kernels;
using tensor::Event;

constexpr int64_t kCount = 1000;
constexpr std::array<const char*, 4> kSchedules = {"late", "early:0", "early:1", "early:2"};

std::unique_ptr<Device> guard_device(const std::string& schedule) {
  setenv("FATHOM_GUARD_SCHEDULE", schedule.c_str(), 1);
  return tensor::open_device_library(GUARD_DEVICE, {.threads = 1});
}

enum class Fault {
  kNone,
  kReductionDoesNotWaitForGradient,
  kUpdateDoesNotWaitForReduction,
  kUpdateDoesNotWaitForSnapshot,
  kSnapshotDoesNotWaitForUpdate,
  kSnapshotIsReadBeforeItIsTaken,
  kStagingIsUsedAgainTooEarly,
  kResultIsReadWithoutSynchronising,
};

std::vector<float> numbers(float first) {
  std::vector<float> out(size_t(kCount), 0.0f);
  std::iota(out.begin(), out.end(), first);
  return out;
}

// Two steps of a small trainer: gradient on the compute context, reduction in parallel, update,
// and a snapshot of the first step's weights that is taken while the second computes.
std::vector<float> two_steps(Device& device, Fault fault) {
  Context& compute = device.compute();
  Context& communication = device.communication();
  Context& copies = device.copies();
  const auto tensor = [&](Context& context) { return context.allocate(1, kCount, DType::kF32); };
  const Tensor weights = tensor(compute), gradient = tensor(compute), batch = tensor(compute);
  const tensor::HostBuffer snapshot(device, kCount * int64_t(sizeof(float)));
  void* staging = nullptr;
  const uint64_t bytes = kCount * sizeof(float);

  std::vector<float> saved(size_t(kCount), 0.0f);
  const auto read_snapshot = [&] { std::memcpy(saved.data(), snapshot.bytes().data(), bytes); };
  Event updated, snapshot_taken;
  double seen_by_host = 0;
  for (int step = 0; step < 2; ++step) {
    if (fault == Fault::kStagingIsUsedAgainTooEarly) {
      // One block for both uploads, without a check whether the first is done.
      if (staging == nullptr) {
        EXPECT_EQ(device.table().allocate_staging(nullptr, bytes, &staging), kernels::kOk);
      }
      const std::vector<float> values = numbers(float(step));
      std::copy(values.begin(), values.end(), static_cast<float*>(staging));
      compute.check(device.table().upload(compute.handle(), batch.address(), staging, bytes));
    } else {
      compute.upload(batch, std::span<const float>(numbers(float(step))));
    }
    compute.run(&Kernels::add_scaled, {.x = batch, .z = {}, .y = gradient, .a = 2});
    const Event differentiated = compute.record();

    if (fault != Fault::kReductionDoesNotWaitForGradient) communication.wait(differentiated);
    communication.call([gradient] {
      for (int64_t i = 0; i < kCount; ++i) gradient.data<float>()[i] *= 3;
    });
    const Event reduced = communication.record();
    if (fault != Fault::kUpdateDoesNotWaitForReduction) compute.wait(reduced);
    if (step == 1 && fault != Fault::kUpdateDoesNotWaitForSnapshot) compute.wait(snapshot_taken);
    compute.run(&Kernels::add_scaled, {.x = weights, .z = gradient, .y = weights, .a = 1, .b = 1});
    updated = compute.record();
    if (step == 0) {
      if (fault != Fault::kSnapshotDoesNotWaitForUpdate) copies.wait(updated);
      copies.download_later(snapshot.bytes(), weights);
      snapshot_taken = copies.record();
      if (fault == Fault::kSnapshotIsReadBeforeItIsTaken) read_snapshot();
    }
  }
  compute.call([weights, &seen_by_host] { seen_by_host = double(weights.data<float>()[7]); });
  if (fault != Fault::kResultIsReadWithoutSynchronising) compute.synchronise();
  std::vector<float> out = {float(seen_by_host)};
  out.resize(size_t(1 + kCount));
  compute.download(std::span(out).subspan(1, size_t(kCount)), weights);
  if (fault != Fault::kSnapshotIsReadBeforeItIsTaken) read_snapshot();
  out.insert(out.end(), saved.begin(), saved.end());
  copies.synchronise();
  communication.synchronise();
  if (staging != nullptr) device.table().release_staging(nullptr, staging);
  return out;
}

std::vector<float> on_guard(const char* schedule, Fault fault) {
  return two_steps(*guard_device(schedule), fault);
}

TEST(Guard, GivesTheCpusResultUnderEverySchedule) {
  const std::vector<float> expected = two_steps(*tensor::make_cpu_device(1), Fault::kNone);
  EXPECT_EQ(expected[0], 2 * 3 * 7 + 2 * 3 * 8);

  for (const char* schedule : kSchedules) EXPECT_EQ(on_guard(schedule, Fault::kNone), expected);
}

class Planted : public ::testing::TestWithParam<Fault> {};

TEST_P(Planted, ShowsUnderAtLeastOneSchedule) {
  const std::vector<float> expected = two_steps(*tensor::make_cpu_device(1), Fault::kNone);

  int found = 0;
  for (const char* schedule : kSchedules) found += on_guard(schedule, GetParam()) != expected;

  EXPECT_GE(found, 1);
}

INSTANTIATE_TEST_SUITE_P(Guard, Planted,
                         ::testing::Values(Fault::kReductionDoesNotWaitForGradient,
                                           Fault::kUpdateDoesNotWaitForReduction,
                                           Fault::kUpdateDoesNotWaitForSnapshot,
                                           Fault::kSnapshotDoesNotWaitForUpdate,
                                           Fault::kSnapshotIsReadBeforeItIsTaken,
                                           Fault::kStagingIsUsedAgainTooEarly,
                                           Fault::kResultIsReadWithoutSynchronising));

TEST(GuardDeathTest, AHostReadIsASegmentationFault) {
  const auto device = guard_device("late");
  const Tensor t = device->compute().allocate(1, kCount, DType::kF32);
  device->compute().synchronise();

  EXPECT_DEATH({ [[maybe_unused]] const volatile float x = t.data<float>()[0]; }, "");
}

TEST(GuardDeathTest, AHostWriteIsASegmentationFault) {
  const auto device = guard_device("early:0");
  const Tensor t = device->compute().allocate(1, kCount, DType::kF32);

  EXPECT_DEATH(t.data<float>()[kCount - 1] = 1, "");
}

TEST(Guard, FreedMemoryOfTheArenaIsNan) {
  const auto device = guard_device("late");
  Context& compute = device->compute();
  Tensor stale;
  {
    const tensor::ArenaScope scope(device->arena());
    stale = device->arena().bottom(1, kCount, DType::kF32);
    compute.run(&Kernels::fill, {.y = stale, .value = 1});
  }
  std::vector<float> values(size_t(kCount), 0.0f);
  compute.download(std::span(values), stale);

  for (const float v : values) EXPECT_TRUE(v != v);
}

TEST(Guard, RunsNothingBeforeItIsNeeded) {
  const auto device = guard_device("late");
  Context& compute = device->compute();
  std::vector<int> order;
  compute.call([&] { order.push_back(1); });
  const Event first = compute.record();
  compute.call([&] { order.push_back(2); });
  EXPECT_FALSE(first.is_done());
  EXPECT_TRUE(order.empty());

  device->communication().wait(first);
  device->communication().synchronise();

  EXPECT_TRUE(first.is_done());
  EXPECT_EQ(order, std::vector<int>{1});  // and no more than was needed
  compute.synchronise();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

// Through the boundary of a library, across which no exception may go.
TEST(Guard, PassesOnWhatAHostFunctionThrows) {
  const auto device = guard_device("late");
  Context& queue = device->communication();
  queue.call([] { fail<IoError>("disk is full"); });
  EXPECT_TRUE(support::throws_with<IoError>("disk is full", [&] { queue.synchronise(); }));
}

}  // namespace
}  // namespace fathom::guard
