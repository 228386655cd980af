#include "core/tensor/arena.h"

#include <cstring>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "core/base/limits.h"
#include "core/kernels/devices.h"
#include "core/tensor/device.h"
#include "tests/support/expect_error.h"

namespace fathom::tensor {
namespace {

constexpr int64_t kUnit = 64;  // bytes; one row of 16 floats

TEST(Arena, GivesAlignedBlocksFromTwoEndsThatDoNotOverlap) {
  const auto device = make_reference_device();
  Arena arena(device->compute(), 100 * kUnit);
  const Tensor a = arena.bottom(3, 5, DType::kF32), b = arena.top(1, 1, DType::kF64),
               c = arena.bottom(1, 17, DType::kF64), d = arena.top(2, 16, DType::kF32);
  const std::vector<Tensor> all = {a, b, c, d};
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(all[i].address()) % 64, 0u);
    std::memset(all[i].address(), int(i + 1), size_t(all[i].bytes()));
  }

  for (size_t i = 0; i < all.size(); ++i) {
    const auto* bytes = all[i].data<unsigned char>();
    for (int64_t k = 0; k < all[i].bytes(); ++k) ASSERT_EQ(bytes[k], i + 1) << "tensor " << i;
  }
  EXPECT_LT(a.address(), c.address());
  EXPECT_LT(d.address(), b.address());
  EXPECT_EQ(arena.used_bytes(), (1 + 1 + 3 + 2) * kUnit);
}

TEST(Arena, RewindsTheBottomToAMark) {
  const auto device = make_reference_device();
  Arena arena(device->compute(), 10 * kUnit);
  const Tensor kept = arena.bottom(1, 16, DType::kF32);
  const Arena::Mark mark = arena.mark();
  const Tensor first = arena.bottom(4, 16, DType::kF32);
  EXPECT_EQ(arena.used_bytes(), 5 * kUnit);

  arena.rewind(mark);
  EXPECT_EQ(arena.used_bytes(), kUnit);
  EXPECT_EQ(arena.bottom(1, 16, DType::kF32).address(), first.address());
  {
    const ArenaScope scope(arena);
    (void)arena.bottom(5, 16, DType::kF32);
    EXPECT_EQ(arena.used_bytes(), 7 * kUnit);
  }
  EXPECT_EQ(arena.used_bytes(), 2 * kUnit);
  EXPECT_EQ(arena.peak_bytes(), 7 * kUnit);
}

TEST(Arena, FreesTopBlocksInReverseOrder) {
  const auto device = make_reference_device();
  Arena arena(device->compute(), 10 * kUnit);
  Tensor a = arena.top(1, 16, DType::kF32), b = arena.top(2, 16, DType::kF32);
  void* const place = b.address();

  b = {};
  EXPECT_EQ(arena.used_bytes(), kUnit);
  b = arena.top(2, 16, DType::kF32);
  EXPECT_EQ(b.address(), place);
  b = {};
  a = {};
  EXPECT_EQ(arena.used_bytes(), 0);
}

// A block freed early waits for the blocks allocated after it, and is returned with them.
TEST(Arena, FreesTopBlocksInAnyOrder) {
  const std::vector<std::vector<size_t>> orders = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  const auto device = make_reference_device();
  for (const std::vector<size_t>& order : orders) {
    Arena arena(device->compute(), 10 * kUnit);
    std::vector<Tensor> blocks;
    for (int i = 0; i < 3; ++i) blocks.push_back(arena.top(1, 16, DType::kF32));

    for (const size_t i : order) {
      blocks[i] = {};
      int64_t in_use = 0;
      for (size_t k = 0; k < 3; ++k)
        if (!blocks[k].is_empty()) in_use = int64_t(k) + 1;
      EXPECT_EQ(arena.used_bytes(), in_use * kUnit);
    }
  }
}

TEST(Arena, KeepsATopBlockWhileAnyTensorSharesIt) {
  const auto device = make_reference_device();
  Arena arena(device->compute(), 10 * kUnit);
  Tensor block = arena.top(4, 16, DType::kF32);
  EXPECT_TRUE(block.is_sole_owner());
  Tensor view = block.columns(3, 5).row_range(1, 2);
  EXPECT_FALSE(block.is_sole_owner());

  block = {};
  EXPECT_EQ(arena.used_bytes(), 4 * kUnit);
  EXPECT_TRUE(view.is_sole_owner());
  view = {};
  EXPECT_EQ(arena.used_bytes(), 0);
}

TEST(Arena, ReportsTheSizesWhenThereIsNoRoom) {
  const auto device = make_reference_device();
  Arena arena(device->compute(), 10 * kUnit);
  const Tensor low = arena.bottom(6, 16, DType::kF32);
  Tensor high = arena.top(4, 16, DType::kF32);  // exactly full
  EXPECT_EQ(arena.used_bytes(), 10 * kUnit);
  const auto is_full = [](const auto& f) {
    return support::throws_with<DeviceError>("lower batch.micro_tokens or data.max_length", f);
  };

  EXPECT_TRUE(is_full([&] { (void)arena.bottom(1, 1, DType::kF32); }));
  EXPECT_TRUE(is_full([&] { (void)arena.top(1, 1, DType::kF32); }));

  high = {};
  EXPECT_TRUE(is_full([&] { (void)arena.bottom(5, 16, DType::kF32); }));
  EXPECT_NO_THROW((void)arena.bottom(4, 16, DType::kF32));
}

// The reference device with a record of what was discarded, as offsets in the first block.
struct Discard {
  int64_t offset, bytes;
  bool operator==(const Discard&) const = default;
};
std::byte* block = nullptr;
std::vector<Discard> discards;
const kernels::DeviceTable& recording_table() {
  static const kernels::DeviceTable table = [] {
    kernels::DeviceTable t = kernels::reference_device();
    t.discard = [](kernels::ContextHandle*, void* memory, uint64_t bytes) {
      auto* const at = static_cast<std::byte*>(memory);
      if (block == nullptr) block = at;
      discards.push_back({at - block, int64_t(bytes)});
      return kernels::kOk;
    };
    return t;
  }();
  return table;
}

TEST(Arena, DiscardsMemoryItNoLongerNeeds) {
  const auto told = [] { return std::exchange(discards, {}); };
  using Discards = std::vector<Discard>;
  discards.clear();
  block = nullptr;
  Device device(recording_table(), {}, {.arena_bytes = 10 * kUnit});
  Arena& arena = device.arena();
  EXPECT_EQ(told(), (Discards{{0, 10 * kUnit}}));

  const Tensor kept = arena.bottom(1, 16, DType::kF32);
  const Arena::Mark mark = arena.mark();
  (void)arena.bottom(2, 16, DType::kF32);
  Tensor a = arena.top(1, 16, DType::kF32), b = arena.top(2, 16, DType::kF32);
  EXPECT_EQ(told(), Discards{});
  arena.rewind(mark);
  EXPECT_EQ(told(), (Discards{{kUnit, 2 * kUnit}}));
  arena.rewind(mark);  // nothing is above it
  a = {};              // its younger neighbour is in use
  EXPECT_EQ(told(), Discards{});
  b = {};
  EXPECT_EQ(told(), (Discards{{7 * kUnit, 3 * kUnit}}));
}

TEST(Arena, OfADeviceHasTheGivenSizeOrAllItsMemory) {
  Device small(kernels::reference_device(), {}, {.arena_bytes = 10 * kUnit});
  EXPECT_TRUE(support::throws_with<DeviceError>(
      "do not fit", [&] { (void)small.arena().top(11, 16, DType::kF32); }));

  const auto whole = make_reference_device();
  const int64_t half = reservable_memory().bytes / 2;
  EXPECT_EQ(whole->arena().bottom(1, half, DType::kBF16).cols(), half);
  EXPECT_TRUE(support::throws_with<DeviceError>(
      "do not fit", [&] { (void)whole->arena().bottom(1, half, DType::kBF16); }));
}

TEST(Arena, ThatIsTooSmallSaysWhatElseToDo) {
  const auto device = make_reference_device();
  Arena arena(device->compute(), 10 * kUnit, "raise ulimit -v");
  EXPECT_TRUE(support::throws_with<DeviceError>(
      "lower batch.micro_tokens or data.max_length, or raise ulimit -v",
      [&] { (void)arena.bottom(11, 16, DType::kF32); }));
}

// As queue systems set it: below what the machine has.
TEST(Arena, ReservesWhatALimitOnAddressSpaceLeaves) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer reserves more for itself";
#endif
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit lower = {.rlim_cur = 2ul << 30, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &lower), 0);
  {
    const auto device = make_reference_device();
    EXPECT_TRUE(support::throws_with<DeviceError>("or raise ulimit -v", [&] {
      (void)device->arena().bottom(1, int64_t{2} << 30, DType::kBF16);
    }));
    EXPECT_EQ(device->arena().bottom(1, 100 << 20, DType::kBF16).cols(), 100 << 20);
    (void)device->compute().allocate(1, 100 << 20, DType::kBF16);
  }
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
}

TEST(Arena, OfNoBytesIsRefused) {
  const auto device = make_reference_device();
  EXPECT_TRUE(support::throws_with<InvalidArgument>("arena: 0 bytes",
                                                    [&] { Arena(device->compute(), 0); }));
}

TEST(Tensor, ViewsSelectRowsAndColumnsOfTheSameMemory) {
  const auto device = make_reference_device();
  Arena arena(device->compute(), 100 * kUnit);
  const Tensor t = arena.bottom(3, 4, DType::kF64);
  for (int i = 0; i < 12; ++i) t.data<double>()[i] = i;

  const Tensor part = t.columns(1, 2).row_range(1, 2);

  EXPECT_EQ(part.rows(), 2);
  EXPECT_EQ(part.cols(), 2);
  EXPECT_EQ(part.row<double>(0)[0], 5);
  EXPECT_EQ(part.row<double>(1)[1], 10);
  EXPECT_FALSE(part.is_contiguous());
  EXPECT_EQ(t.reshaped(4, 3).row<double>(2)[1], 7);
  EXPECT_TRUE(support::throws_with<InvalidArgument>("reshape: (3, 4) to (5, 3)",
                                                    [&] { (void)t.reshaped(5, 3); }));
  EXPECT_TRUE(support::throws_with<InvalidArgument>("reshape: (2, 2) to (1, 4)",
                                                    [&] { (void)part.reshaped(1, 4); }));
}

}  // namespace
}  // namespace fathom::tensor
