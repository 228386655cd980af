#include "checkpoint/sparse_bytes.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace fathom::checkpoint {
namespace {

std::vector<std::byte> filled(size_t count, int value) {
  return std::vector<std::byte>(count, std::byte(value));
}

TEST(SparseBytes, AreZeroWhereNothingWasWritten) {
  const SparseBytes bytes;
  std::vector<std::byte> read = filled(10000, 7);
  bytes.read(uint64_t{1} << 50, read);
  EXPECT_EQ(read, filled(10000, 0));
}

TEST(SparseBytes, AreReadAsTheyWereWritten) {
  SparseBytes bytes;
  std::vector<std::byte> model = filled(20000, 0);
  const uint64_t far = (uint64_t{1} << 50) + 123;
  // The second write lies across the end of the first, the third within it, and none on a page.
  const struct {
    size_t offset, count;
  } writes[] = {{10, 9000}, {8900, 5000}, {100, 1}, {4000, 200}};
  int value = 0;
  for (const auto& write : writes) {
    bytes.write(far + write.offset, filled(write.count, ++value));
    std::fill_n(model.begin() + ptrdiff_t(write.offset), write.count, std::byte(value));
  }
  std::vector<std::byte> read = filled(20000, 7);
  bytes.read(far, read);
  EXPECT_EQ(read, model);

  std::vector<std::byte> part = filled(3000, 7);
  bytes.read(far + 8000, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), model.begin() + 8000));
}

}  // namespace
}  // namespace fathom::checkpoint
