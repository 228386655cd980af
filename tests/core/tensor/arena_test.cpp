#include "core/tensor/arena.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensor/device.h"
#include "tests/support/expect_error.h"

namespace fathom::tensor {
namespace {

constexpr int64_t kUnit = 64;  // bytes; one row of 16 floats

TEST(Arena, GivesAlignedBlocksFromTwoEndsThatDoNotOverlap) {
  Arena arena(100 * kUnit);
  const Tensor a = arena.bottom(3, 5, DType::kF32), b = arena.top(1, 1, DType::kF64),
               c = arena.bottom(1, 17, DType::kF64), d = arena.top(2, 16, DType::kF32);
  const std::vector<Tensor> all = {a, b, c, d};
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(all[i].raw()) % 64, 0u);
    std::memset(all[i].raw(), int(i + 1), size_t(all[i].numel() * size_of(all[i].dtype())));
  }

  for (size_t i = 0; i < all.size(); ++i) {
    const auto* bytes = all[i].data<unsigned char>();
    for (int64_t k = 0; k < all[i].numel() * size_of(all[i].dtype()); ++k)
      ASSERT_EQ(bytes[k], i + 1) << "tensor " << i;
  }
  EXPECT_LT(a.raw(), c.raw());
  EXPECT_LT(d.raw(), b.raw());
  EXPECT_EQ(arena.used_bytes(), (1 + 1 + 3 + 2) * kUnit);
}

TEST(Arena, RewindsTheBottomToAMark) {
  Arena arena(10 * kUnit);
  const Tensor kept = arena.bottom(1, 16, DType::kF32);
  const Arena::Mark mark = arena.mark();
  const Tensor first = arena.bottom(4, 16, DType::kF32);
  EXPECT_EQ(arena.used_bytes(), 5 * kUnit);

  arena.rewind(mark);
  EXPECT_EQ(arena.used_bytes(), kUnit);
  EXPECT_EQ(arena.bottom(1, 16, DType::kF32).raw(), first.raw());
  {
    const ArenaScope scope(arena);
    (void)arena.bottom(5, 16, DType::kF32);
    EXPECT_EQ(arena.used_bytes(), 7 * kUnit);
  }
  EXPECT_EQ(arena.used_bytes(), 2 * kUnit);
  EXPECT_EQ(arena.peak_bytes(), 7 * kUnit);
}

TEST(Arena, TakesTopBlocksBackInReverseOrder) {
  Arena arena(10 * kUnit);
  Tensor a = arena.top(1, 16, DType::kF32), b = arena.top(2, 16, DType::kF32);
  void* const place = b.raw();

  b = {};
  EXPECT_EQ(arena.used_bytes(), kUnit);
  b = arena.top(2, 16, DType::kF32);
  EXPECT_EQ(b.raw(), place);
  b = {};
  a = {};
  EXPECT_EQ(arena.used_bytes(), 0);
}

// A block freed early waits for its younger neighbours, and goes with them.
TEST(Arena, TakesTopBlocksBackInAnyOrder) {
  const std::vector<std::vector<size_t>> orders = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const std::vector<size_t>& order : orders) {
    Arena arena(10 * kUnit);
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
  Arena arena(10 * kUnit);
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

TEST(Arena, SaysWhatDidNotFitWhenTheEndsMeet) {
  Arena arena(10 * kUnit);
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

TEST(Tensor, ViewsSelectRowsAndColumnsOfTheSameMemory) {
  Arena arena(100 * kUnit);
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

TEST(Device, IsMadeByNameAndRefusesWhatItHasNot) {
  EXPECT_EQ(make_device("reference", 4)->name(), "reference");
  EXPECT_EQ(make_device("reference", 4)->pool().threads(), 1);
  EXPECT_EQ(make_device("cpu", 2)->pool().threads(), 2);
  EXPECT_EQ(make_device("auto", 1)->name(), "cpu");
  EXPECT_TRUE(support::throws_with<InvalidArgument>("train.device: got tpu",
                                                    [] { (void)make_device("tpu", 1); }));
  EXPECT_NO_THROW(make_device("reference", 1)->check_supports(DType::kF64));
  EXPECT_TRUE(support::throws_with<InvalidArgument>(
      "device cpu: computes in f32, not f64; train.precision fp64 needs train.device reference",
      [] { make_device("cpu", 1)->check_supports(DType::kF64); }));
  EXPECT_FALSE(cpu_numerics_fingerprint().empty());
}

}  // namespace
}  // namespace fathom::tensor
