// Failures inside a context, and the destruction of a device whose queues are busy.
#include <chrono>
#include <thread>

#include "tests/core/tensor/context_support.h"
#include "tests/support/expect_error.h"

namespace fathom::tensor {
namespace {

using namespace std::literals;

// A type of its own, so that only this exception matches.
struct Broken : DataError {
  using DataError::DataError;
};

template <class F>
[[nodiscard]] ::testing::AssertionResult is_broken(F&& f) {
  return support::throws_with<Broken>("page 7 is torn", f);
}
void break_queue(Context& queue) {
  queue.call([] { throw Broken("page 7 is torn"); });
}

// A queue that was given a failing function, and some work after it, while it was held.
class FailedQueue : public HostDevices {
 protected:
  FailedQueue() {
    Gate gate;
    gate.hold(queue_);
    before_ = queue_.record();
    break_queue(queue_);
    auto owned = std::make_shared<int>(0);
    owned_ = owned;
    queue_.call([this, owned = std::move(owned)] { is_run_ = true; });
    fill(queue_, x_, 1);
    after_ = queue_.record();
  }

  Context& queue_ = device_->communication();
  Tensor x_ = queue_.allocate(1, 4, DType::kF32);
  bool is_run_ = false;
  std::weak_ptr<int> owned_;
  Event before_, after_;
};

TEST_P(FailedQueue, ThrowsTheSameExceptionFromEveryLaterCall) {
  const std::vector<float> values(4);
  for (int again = 0; again < 2; ++again) {
    EXPECT_TRUE(is_broken([&] { queue_.synchronise(); }));
    EXPECT_TRUE(is_broken([&] { (void)queue_.record(); }));
    EXPECT_TRUE(is_broken([&] { queue_.call([this] { is_run_ = true; }); }));
    EXPECT_TRUE(is_broken([&] { fill(queue_, x_, 1); }));
    EXPECT_TRUE(is_broken([&] { queue_.copy(x_, x_); }));
    EXPECT_TRUE(is_broken([&] { queue_.wait(compute_.record()); }));
    EXPECT_TRUE(is_broken([&] { queue_.upload(x_, std::span<const float>(values)); }));
    EXPECT_TRUE(is_broken([&] { (void)floats(queue_, x_); }));
    EXPECT_TRUE(is_broken([&] { (void)queue_.allocate(1, 1, DType::kF32); }));
  }
}

TEST_P(FailedQueue, RunsNothingMoreButReleasesIt) {
  EXPECT_TRUE(is_broken([&] { queue_.synchronise(); }));
  EXPECT_FALSE(is_run_);
  EXPECT_TRUE(owned_.expired());
  EXPECT_EQ(*x_.data<float>(), 0);

  auto late = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = late;
  EXPECT_TRUE(is_broken([&] { queue_.call([this, late = std::move(late)] { is_run_ = true; }); }));
  EXPECT_FALSE(is_run_);
  EXPECT_TRUE(watched.expired());
}

TEST_P(FailedQueue, ReachesAContextThatWaitsForAnEventAfterTheFailure) {
  compute_.wait(before_);
  EXPECT_TRUE(is_broken([&] { compute_.wait(after_); }));
  EXPECT_TRUE(after_.is_done());  // nobody hangs

  Context& copies = device_->copies();
  copies.wait(before_);
  copies.synchronise();
  copies.wait(after_);
  EXPECT_TRUE(is_broken([&] { copies.synchronise(); }));
}

TEST_P(FailedQueue, LeavesTheOtherContextsUsable) {
  EXPECT_TRUE(is_broken([&] { queue_.synchronise(); }));
  for (Context* other : {&compute_, &device_->copies()}) {
    const Tensor y = other->allocate(1, 4, DType::kF32);
    fill(*other, y, 2);
    EXPECT_EQ(floats(*other, y), std::vector<float>(4, 2));
  }
}

// `x_`, allocated on the queue, is destroyed after this.
TEST_P(FailedQueue, NeedsNoFurtherCall) {}

INSTANTIATE_TEST_SUITE_P(Context, FailedQueue, ::testing::Values("reference", "cpu"));

class Failure : public HostDevices {};

TEST_P(Failure, OfAHostFunctionOnComputeIsThrownAtOnceAndForgotten) {
  bool is_run = false;
  EXPECT_TRUE(is_broken([&] { break_queue(compute_); }));
  compute_.call([&] { is_run = true; });
  EXPECT_TRUE(is_run);
  EXPECT_TRUE(support::throws_with<InvalidArgument>(
      "another", [&] { compute_.call([] { fail("another one"); }); }));
}

TEST_P(Failure, OfTheDeviceIsReportedWhateverHostFunctionsThrewBefore) {
  EXPECT_TRUE(is_broken([&] { break_queue(compute_); }));
  EXPECT_TRUE(support::throws_with<DeviceError>(
      GetParam() + ": 1073741824 MiB cannot be had: ",
      [&] { (void)compute_.allocate(1 << 20, 1 << 27, DType::kF64); }));
}

INSTANTIATE_TEST_SUITE_P(Context, Failure, ::testing::Values("reference", "cpu"));

class EndOfDevice : public HostDevices {};

TEST_P(EndOfDevice, ComesAfterAllWorkOfItsQueues) {
  int done = 0;
  for (Context* queue : {&device_->communication(), &device_->copies()}) {
    queue->call([] { std::this_thread::sleep_for(10ms); });
    device_->communication().wait(queue->record());
  }
  device_->communication().call([&] { ++done; });
  device_.reset();
  EXPECT_EQ(done, 1);
}

TEST_P(EndOfDevice, ReleasesTensorsThatAFunctionOnAnotherQueueOwns) {
  Context* const all[] = {&compute_, &device_->communication(), &device_->copies()};
  for (Context* owner : all)
    for (Context* user : all) {
      Tensor t = owner->allocate(1, 100'000, DType::kF32);
      user->wait(owner->record());
      user->call([t = std::move(t)] {
        std::this_thread::sleep_for(2ms);
        *t.data<float>() += 1;
      });
    }
  device_.reset();
}

TEST_P(EndOfDevice, ReleasesMemoryAfterItsLastUse) {
  Context& queue = device_->communication();
  float seen = 0;
  {
    Gate gate;
    gate.hold(queue);
    const Tensor x = queue.allocate(1, 100'000, DType::kF32);
    fill(queue, x, 4);
    queue.call([&seen, data = x.data<float>()] { seen = data[99'999]; });
  }  // the handle goes, the queue still writes
  device_.reset();
  EXPECT_EQ(seen, 4);
}

INSTANTIATE_TEST_SUITE_P(Context, EndOfDevice, ::testing::Values("reference", "cpu"));

}  // namespace
}  // namespace fathom::tensor
