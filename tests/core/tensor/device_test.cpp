// What a device reports about itself, and how it is chosen.
#include "core/tensor/device.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "core/kernels/devices.h"
#include "tests/support/expect_error.h"
#include "tests/support/thread_limit.h"

namespace fathom::tensor {
namespace {

TEST(Device, IsMadeByNameAndRefusesUnknownOnes) {
  EXPECT_EQ(make_device("reference", 4)->name(), "reference");
  EXPECT_EQ(make_device("cpu", 2)->name(), "cpu");
  EXPECT_EQ(make_device("auto", 1)->name(), "cpu");
  for (const char* name : {"tpu", "cuda", ""})
    EXPECT_TRUE(support::throws_with<InvalidArgument>(
        join("train.device: got ", name, ", this build has auto, cpu and reference"),
        [&] { (void)make_device(name, 1); }));
}

TEST(Device, ReportsWhichTypesItComputesIn) {
  const auto reference = make_reference_device(), cpu = make_cpu_device(1);
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16})
    EXPECT_NO_THROW(reference->check_supports(dtype));
  EXPECT_NO_THROW(cpu->check_supports(DType::kF32));
  EXPECT_TRUE(
      support::throws_with<InvalidArgument>("device reference: does not compute in i32",
                                            [&] { reference->check_supports(DType::kI32); }));
  for (const char* type : {"f64", "bf16"})
    EXPECT_TRUE(support::throws_with<InvalidArgument>(
        join("device cpu: does not compute in ", type,
             "; train.precision fp64 and bf16 need train.device reference"),
        [&] { cpu->check_supports(type[0] == 'f' ? DType::kF64 : DType::kBF16); }));
}

TEST(Device, IdentifiesItsNumericsWithoutTheThreads) {
  const std::string reference = make_reference_device()->numerics(),
                    cpu = make_cpu_device(1)->numerics();
  EXPECT_FALSE(reference.empty());
  EXPECT_FALSE(cpu.empty());
  EXPECT_NE(reference, cpu);
  for (const int threads : {2, 3, 8}) EXPECT_EQ(make_cpu_device(threads)->numerics(), cpu);
}

TEST(Device, KnowsItsMemoryAndThatTheHostReachesIt) {
  for (const auto& device : {make_reference_device(), make_cpu_device(1)}) {
    const kernels::DeviceInfo info = device->info();
    EXPECT_EQ(info.is_host_accessible, 1);
    EXPECT_GT(info.memory_total, uint64_t{64} << 20);
    EXPECT_GT(info.memory_free, 0u);
    EXPECT_GT(info.memory_used, 0u);
    EXPECT_LT(info.memory_free, info.memory_total);
    EXPECT_LT(info.memory_used, info.memory_total);
  }
}

TEST(Device, HasAPeak) {
  for (const auto& device : {make_reference_device(), make_cpu_device(1)})
    EXPECT_GT(device->peak_flops(DType::kF32), 1e6);
}

// OpenBLAS would look for its buffers for ever.
TEST(Device, SaysThatTheBuffersOfItsThreadsDoNotFit) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer reserves more for itself";
#endif
  (void)make_cpu_device(1);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit lower = {.rlim_cur = rlim_t{2} << 30, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &lower), 0);
  for (const char* part :
       {"129 MiB of address space for each of 16 threads", "train.threads", "raise ulimit -v"})
    EXPECT_TRUE(support::throws_with<DeviceError>(part, [] { (void)make_cpu_device(16); }));
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
}

TEST(Device, HasAPeakAlsoWhereNoThreadCanBeStarted) {
  const auto device = make_cpu_device(3);
  const auto limit = support::ThreadLimit::most(0);
  EXPECT_GT(device->peak_flops(DType::kF32), 1e6);
}

TEST(Device, SaysWhichOfItsThreadsCannotBeStarted) {
  for (int n = 1; n < 4; ++n) {
    const auto limit = support::ThreadLimit::failing(n);
    EXPECT_TRUE(support::throws_with<IoError>(
        join("cpu: thread pool: thread ", n + 1, " of 4 cannot be started"),
        [] { (void)make_cpu_device(4); }));
  }
  const auto device = make_reference_device();
  const auto limit = support::ThreadLimit::most(0);
  for (Context& (Device::*context)() : {&Device::communication, &Device::copies})
    EXPECT_TRUE(support::throws_with<IoError>("reference: queue: its thread cannot be started",
                                              [&] { (void)(device.get()->*context)(); }));
}

TEST(Device, HasOneContextOfEachKind) {
  const auto device = make_reference_device();
  Context *const compute = &device->compute(), *const communication = &device->communication(),
                 *const copies = &device->copies();
  EXPECT_NE(compute, communication);
  EXPECT_NE(compute, copies);
  EXPECT_NE(communication, copies);
  EXPECT_EQ(&device->communication(), communication);
  EXPECT_EQ(&device->copies(), copies);
  EXPECT_EQ(&compute->device(), device.get());
}

TEST(Device, CountsTheBytesOfItsContextsTensors) {
  const auto device = make_cpu_device(1);
  EXPECT_EQ(device->allocated_bytes(), 0);
  const Tensor kept = device->compute().allocate(3, 5, DType::kF64);
  {
    const Tensor other = device->communication().allocate(1, 7, DType::kF32), copy = other;
    EXPECT_EQ(device->allocated_bytes(), 3 * 5 * 8 + 7 * 4);
  }
  EXPECT_EQ(device->allocated_bytes(), 3 * 5 * 8);
}

TEST(Device, ForPlansHoldsMoreThanTheMachineHasAndComputesNothing) {
  const auto device = make_planning_device();
  const int64_t count = int64_t(device->info().memory_total);

  const Tensor large = device->compute().allocate(1, count, DType::kF64);
  device->compute().run(&kernels::Kernels::fill, {.y = large, .value = 1});

  EXPECT_EQ(device->allocated_bytes(), 8 * count);
  EXPECT_EQ(large.data<double>()[count - 1], 0);
}

TEST(Device, NeedsAThread) {
  EXPECT_TRUE(support::throws_with<DeviceError>("needs at least 1 thread, got 0",
                                                [] { (void)make_cpu_device(0); }));
}

TEST(Device, ThatTheHostCannotReachRefusesHostFunctions) {
  kernels::DeviceTable table = kernels::reference_device();
  table.call = nullptr;
  Device device(table, {});
  EXPECT_TRUE(support::throws_with<DeviceError>("reference: host functions cannot reach",
                                                [&] { device.compute().call([] {}); }));
}

TEST(DeviceTable, OfTheHostDevicesIsComplete) {
  for (const kernels::DeviceTable* table : {&kernels::reference_device(), &kernels::cpu_device()}) {
    EXPECT_EQ(table->version, kernels::kDeviceTableVersion);
    EXPECT_EQ(table->bytes, sizeof(kernels::DeviceTable));
    size_t count = 0;
    kernels::for_each_kernel([&](const char* name, auto member) {
      EXPECT_NE(table->kernels.*member, nullptr) << name;
      ++count;
    });
    EXPECT_EQ(count * sizeof(void*), sizeof(kernels::Kernels));
  }
}

}  // namespace
}  // namespace fathom::tensor
