// Order within a context and between contexts, copies to and from the host.
#include "core/tensor/context.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "core/kernels/devices.h"
#include "core/tensor/host_buffer.h"
#include "tests/core/tensor/context_support.h"
#include "tests/support/expect_error.h"

namespace fathom::tensor {
namespace {

using Floats = std::vector<float>;
using namespace std::literals;

class EveryContext : public HostDevices {
 protected:
  const std::vector<Context*> all_ = {&device_->compute(), &device_->communication(),
                                      &device_->copies()};
};

TEST_P(EveryContext, RunsInTheOrderOfTheCalls) {
  for (Context* context : all_) {
    const Tensor x = context->allocate(1, 1000, DType::kF32),
                 y = context->allocate(1, 1000, DType::kF32);
    Floats seen;
    const auto see = [&seen, x, y] {
      seen.insert(seen.end(), {*x.data<float>(), *y.data<float>()});
    };

    context->call(see);
    fill(*context, x, 3);
    context->call(see);
    context->run(&kernels::Kernels::add_scaled, {.x = x, .z = {}, .y = x, .a = 2});
    context->copy(y, x);
    context->call(see);
    context->upload(x, std::span<const float>(Floats(1000, -1)));
    context->call(see);
    context->call([y] { std::fill_n(y.data<float>(), 1000, 8.0f); });
    const Floats last = floats(*context, y);

    EXPECT_EQ(seen, (Floats{0, 0, 3, 0, 6, 6, -1, 6}));
    EXPECT_EQ(last, Floats(1000, 8));
  }
}

TEST_P(EveryContext, GivesMemoryThatIsZeroedAndAligned) {
  for (Context* context : all_)
    for (const int64_t cols : {0, 1, 100, 300'000})  // from the heap, and mapped
      for (const DType dtype : {DType::kF32, DType::kI32})
        for (int again = 0; again < 2; ++again) {  // what was written and released before
          const Tensor t = context->allocate(1, cols, dtype);
          std::vector<int32_t> bits(size_t(cols), 1);
          context->download(std::as_writable_bytes(std::span(bits)), t);
          EXPECT_EQ(std::ranges::count(bits, 0), cols);
          EXPECT_EQ(reinterpret_cast<uintptr_t>(t.address()) % 64, 0u);
          std::ranges::fill(bits, -1);
          context->upload(t, std::as_bytes(std::span(bits)));
        }
}

TEST_P(EveryContext, CopiesOnlyContiguousTensorsOfTheRightSize) {
  for (Context* context : all_) {
    const Tensor x = context->allocate(2, 4, DType::kF32), y = context->allocate(4, 2, DType::kF32),
                 wide = context->allocate(2, 4, DType::kF64);
    Floats eight(8, 2), seven(7);
    const auto refused = [](const char* part, const auto& f) {
      return support::throws_with<InvalidArgument>(part, f);
    };

    EXPECT_TRUE(refused("upload: 28 bytes for f32 (2, 4)",
                        [&] { context->upload(x, std::span<const float>(seven)); }));
    EXPECT_TRUE(refused("upload: 16 bytes for f32 (2, 2)", [&] {
      context->upload(x.columns(1, 2), std::span<const float>(eight).first(4));
    }));
    EXPECT_TRUE(refused("download: f32 (2, 4) into 28 bytes",
                        [&] { context->download(std::span(seven), x); }));
    EXPECT_TRUE(refused("download: f32 (2, 2) into 16 bytes",
                        [&] { context->download(std::span(eight).first(4), x.columns(1, 2)); }));
    EXPECT_TRUE(refused("copy: f64 (2, 4) to f32 (2, 4)", [&] { context->copy(x, wide); }));
    EXPECT_TRUE(refused("copy: f32 (2, 2) to f32 (2, 2)",
                        [&] { context->copy(y.row_range(0, 2), x.columns(0, 2)); }));
    EXPECT_TRUE(
        refused("copy: f32 (1, 4) to f32 (2, 4)", [&] { context->copy(x, x.row_range(0, 1)); }));

    context->upload(y, std::span<const float>(eight));
    context->copy(x, y);  // the same elements in another shape
    EXPECT_EQ(floats(*context, x), eight);
    context->upload(x.row_range(0, 0), std::span<const float>());
    context->copy(x.row_range(0, 0), y.row_range(0, 0));
    context->download(std::span(seven).first(0), x.row_range(0, 0));
  }
}

TEST_P(HostDevices, HostWaitsAreDownloadsAndSynchronisationsAlone) {
  Context& queue = device_->communication();
  const Tensor x = queue.allocate(1, 4, DType::kF32), y = queue.allocate(1, 4, DType::kF32);
  Floats values(4, 1);
  queue.upload(x, std::span<const float>(values));
  queue.copy(y, x);
  queue.call([] {});
  const Event event = queue.record();
  compute_.wait(event);
  EXPECT_TRUE(event.is_done());
  EXPECT_EQ(device_->host_waits(), 0);

  queue.download(std::span(values), y);
  EXPECT_EQ(device_->host_waits(), 1);
  queue.synchronise();
  compute_.synchronise();
  EXPECT_EQ(device_->host_waits(), 3);
}

TEST_P(HostDevices, ALaterDownloadWritesInTheOrderOfItsContextWithoutBlockingTheHost) {
  Context& queue = device_->copies();
  const Tensor x = queue.allocate(1, 1000, DType::kF32);
  const HostBuffer buffer(*device_, x.bytes());
  const auto* values = reinterpret_cast<const float*>(buffer.bytes().data());
  Gate gate;
  fill(queue, x, 3);
  gate.hold(queue);
  queue.download_later(buffer.bytes(), x);
  const Event is_written = queue.record();
  fill(queue, x, 4);

  EXPECT_FALSE(is_written.is_done());
  EXPECT_EQ(device_->host_waits(), 0);
  gate.open();
  compute_.wait(is_written);

  EXPECT_EQ(Floats(values, values + 1000), Floats(1000, 3));
}

TEST_P(HostDevices, ComputeContinuesWhileAQueueIsBlocked) {
  for (Context* queue : {&device_->communication(), &device_->copies()}) {
    const Tensor x = compute_.allocate(1, 1000, DType::kF32);
    std::atomic<bool> is_run = false;
    Gate gate;
    gate.hold(*queue);
    queue->call([&] { is_run = true; });
    const Event event = queue->record();

    fill(compute_, x, 5);
    EXPECT_EQ(floats(compute_, x), Floats(1000, 5));
    EXPECT_TRUE(compute_.record().is_done());
    EXPECT_FALSE(event.is_done());
    EXPECT_FALSE(is_run);

    gate.open();
    queue->synchronise();
    EXPECT_TRUE(event.is_done());
    EXPECT_TRUE(is_run);
  }
}

TEST_P(HostDevices, QueuesRunConcurrently) {
  Gate gate;
  gate.hold(device_->communication());
  std::atomic<bool> is_run = false;
  device_->copies().call([&] { is_run = true; });
  device_->copies().synchronise();
  EXPECT_TRUE(is_run);
}

TEST_P(HostDevices, ComputeSeesAfterAnEventWhatAQueueWrote) {
  Context& queue = device_->communication();
  const Tensor x = compute_.allocate(1, 1, DType::kF32), y = compute_.allocate(1, 1, DType::kF32);
  queue.call([x] {
    std::this_thread::sleep_for(20ms);
    *x.data<float>() = 7;
  });

  compute_.wait(queue.record());

  compute_.copy(y, x);
  EXPECT_EQ(floats(compute_, y), Floats{7});
}

TEST_P(HostDevices, AQueueSeesAfterAnEventWhatComputeAndOtherQueuesWrote) {
  Context &queue = device_->communication(), &copies = device_->copies();
  const Tensor x = compute_.allocate(1, 2, DType::kF32), y = copies.allocate(1, 2, DType::kF32);
  Gate gate;
  gate.hold(queue);
  fill(compute_, x.columns(0, 1), 3);
  queue.wait(compute_.record());
  queue.run(&kernels::Kernels::add_scaled,
            {.x = x.columns(0, 1), .z = {}, .y = x.columns(1, 1), .a = 2});
  copies.wait(queue.record());
  copies.copy(y, x);
  const Event copied = copies.record();
  std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(copied.is_done());

  gate.open();
  EXPECT_EQ(floats(copies, y), (Floats{3, 6}));
  EXPECT_TRUE(copied.is_done());
}

TEST_P(HostDevices, AnEventThatIsNotSetIsDone) {
  const Event none;
  EXPECT_FALSE(none.is_set());
  EXPECT_TRUE(none.is_done());
  compute_.wait(none);
  device_->communication().wait(none);
  device_->communication().synchronise();
}

TEST_P(HostDevices, TimeBetweenEventsIsKnownWhenBothAreDone) {
  Context& queue = device_->communication();
  const Event start = compute_.record();
  Gate gate;
  gate.hold(queue);
  queue.call([] { std::this_thread::sleep_for(20ms); });
  const Event end = queue.record();
  const auto is_refused = [](const Event& from, const Event& to) {
    return support::throws_with<DeviceError>("before both are done",
                                             [&] { (void)seconds_between(from, to); });
  };
  EXPECT_TRUE(is_refused(start, end));
  EXPECT_TRUE(is_refused(end, start));
  EXPECT_TRUE(is_refused(start, Event()));
  EXPECT_TRUE(is_refused(Event(), start));

  gate.open();
  queue.synchronise();
  EXPECT_GE(seconds_between(start, end), 0.02);
  EXPECT_LT(seconds_between(start, end), 60);
  EXPECT_EQ(seconds_between(end, start), -seconds_between(start, end));
}

TEST_P(HostDevices, AnEventOutlivesItsContext) {
  Event event;
  {
    Context queue(*device_, kernels::ContextKind::kCommunication);
    event = queue.record();
  }
  EXPECT_TRUE(event.is_done());
  compute_.wait(event);
}

TEST_P(HostDevices, TheSourceOfAnUploadMayChangeAtOnce) {
  Context& copies = device_->copies();
  const Tensor x = copies.allocate(1, 3, DType::kF32);
  Gate gate;
  gate.hold(copies);
  Floats source = {1, 2, 3};
  copies.upload(x, std::span<const float>(source));
  std::ranges::fill(source, -1);
  gate.open();

  EXPECT_EQ(floats(copies, x), (Floats{1, 2, 3}));
}

// The reference device with a count of its staging blocks.
std::atomic<int> staging_blocks;
const kernels::DeviceTable& counting_table() {
  static const kernels::DeviceTable table = [] {
    kernels::DeviceTable t = kernels::reference_device();
    t.allocate_staging = [](kernels::DeviceHandle* device, uint64_t bytes, void** out) {
      ++staging_blocks;
      return kernels::reference_device().allocate_staging(device, bytes, out);
    };
    t.release_staging = [](kernels::DeviceHandle* device, void* memory) {
      --staging_blocks;
      kernels::reference_device().release_staging(device, memory);
    };
    return t;
  }();
  return table;
}

TEST(Staging, IsReusedWhenTheUploadIsDoneAndNotBefore) {
  staging_blocks = 0;
  {
    Device device(counting_table(), {});
    Context& copies = device.copies();
    std::vector<Tensor> tensors;
    for (int i = 0; i < 4; ++i) tensors.push_back(copies.allocate(1, 1000, DType::kF32));
    const auto upload_all = [&](int base) {
      for (size_t i = 0; i < 4; ++i)
        copies.upload(tensors[i], std::span<const float>(Floats(1000, float(base + int(i)))));
    };
    Gate gate;
    gate.hold(copies);
    upload_all(10);
    EXPECT_EQ(staging_blocks, 4);
    gate.open();
    for (size_t i = 0; i < 4; ++i)
      EXPECT_EQ(floats(copies, tensors[i]), Floats(1000, float(10 + i)));

    upload_all(20);
    EXPECT_EQ(floats(copies, tensors[3]), Floats(1000, 23));
    EXPECT_EQ(staging_blocks, 4);
    const Tensor large = copies.allocate(1, 1 << 20, DType::kF32);  // more than a block has
    copies.upload(large, std::span<const float>(Floats(1 << 20, 2)));
    EXPECT_EQ(staging_blocks, 5);
    EXPECT_EQ(floats(copies, large), Floats(1 << 20, 2));
  }
  EXPECT_EQ(staging_blocks, 0);
}

TEST(Staging, OfAContextThatNeverLagsIsOneBlock) {
  staging_blocks = 0;
  Device device(counting_table(), {});
  const Tensor x = device.compute().allocate(1, 10, DType::kF32);
  for (int i = 0; i < 10; ++i)
    device.compute().upload(x, std::span<const float>(Floats(10, float(i))));
  EXPECT_EQ(staging_blocks, 1);
}

INSTANTIATE_TEST_SUITE_P(Context, HostDevices, ::testing::Values("reference", "cpu"));
INSTANTIATE_TEST_SUITE_P(Context, EveryContext, ::testing::Values("reference", "cpu"));

}  // namespace
}  // namespace fathom::tensor
