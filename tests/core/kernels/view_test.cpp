#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "core/kernels/view_cpu.h"

namespace fathom::kernels::cpu {
namespace {

TEST(View, OfAMatrixIsABlockOfItAndItsTransposeHasItsColumnsAsRows) {
  std::vector<float> numbers(4 * 10);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const Matrix matrix = {.data = numbers.data(), .rows = 4, .cols = 9, .stride = 10};

  const View block = view(matrix, 1, 3, 4, 2);
  EXPECT_EQ(block.rows, 3);
  EXPECT_EQ(block.cols, 2);
  EXPECT_EQ(block.row(2)[1], 35);

  const View transposed = block.transposed();
  EXPECT_EQ(transposed.rows, 2);
  EXPECT_EQ(transposed.cols, 3);
  EXPECT_EQ(transposed.row(1)[2 * transposed.step], 35);

  EXPECT_EQ(block.rows_at(1, 2).row(1)[0], 34);
  EXPECT_EQ(block.rows_at(1, 2).rows, 2);
  EXPECT_EQ(transposed.first_cols(1).cols, 1);
  EXPECT_EQ(transposed.rows_at(1, 1).row(0)[0], 15);
}

}  // namespace
}  // namespace fathom::kernels::cpu
