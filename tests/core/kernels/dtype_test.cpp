#include "core/kernels/dtype.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/core/kernels/kernel_support.h"

namespace fathom::kernels {
namespace {

uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }
Bf16 pattern(uint32_t bits) {
  Bf16 b;
  b.bits = uint16_t(bits);
  return b;
}

TEST(DTypes, HaveTheirSizesNamesAndWideTypes) {
  EXPECT_EQ(size_of(DType::kF32), 4);
  EXPECT_EQ(size_of(DType::kF64), 8);
  EXPECT_EQ(size_of(DType::kBF16), 2);
  EXPECT_EQ(size_of(DType::kI32), 4);
  EXPECT_EQ(sizeof(Bf16), 2u);
  EXPECT_STREQ(to_string(DType::kBF16), "bf16");
  EXPECT_EQ(wide_of(DType::kBF16), DType::kF32);
  EXPECT_EQ(wide_of(DType::kF32), DType::kF32);
  EXPECT_EQ(wide_of(DType::kF64), DType::kF64);
  EXPECT_EQ(dtype_of<Bf16>(), DType::kBF16);
  EXPECT_EQ(dtype_of<int32_t>(), DType::kI32);
}

TEST(Bf16, IsTheUpperHalfOfAFloatAndEveryPatternComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = float(pattern(bits));

    EXPECT_EQ(bits_of(value), bits << 16);
    const uint16_t back = Bf16(value).bits;
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float(Bf16(value)))) << bits;
      EXPECT_EQ(back, bits | 0x40u) << "a quiet NaN of the same sign and payload";
    } else {
      EXPECT_EQ(back, bits);
      EXPECT_EQ(Bf16(double(value)).bits, bits);
      EXPECT_EQ(double(pattern(bits)), double(value));
    }
  }
}

// Between every two neighbours: their middle goes to the even one, its neighbours in f32 to the
// nearer one. This includes denormal numbers and the step to infinity.
TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  for (const uint32_t sign : {0u, 0x8000u}) {
    for (uint32_t low = sign; low < sign + 0x7F80u; ++low) {
      const uint32_t middle = (low << 16) + 0x8000u, even = low % 2 == 0 ? low : low + 1;

      ASSERT_EQ(Bf16(float_of(middle)).bits, even) << low;
      ASSERT_EQ(Bf16(float_of(middle - 1)).bits, low) << low;
      ASSERT_EQ(Bf16(float_of(middle + 1)).bits, low + 1) << low;
      ASSERT_EQ(bits_of(float(Bf16(float_of(middle)))), bits_of(nearest_bf16(float_of(middle))));
      ASSERT_EQ(bits_of(float(Bf16(float_of(middle + 1)))),
                bits_of(nearest_bf16(float_of(middle + 1))));
    }
  }
}

TEST(Bf16, HasItsKnownValues) {
  EXPECT_EQ(Bf16(1.0f).bits, 0x3F80);
  EXPECT_EQ(Bf16(-2.0).bits, 0xC000);
  EXPECT_EQ(float(Bf16(1 + 1.0f / 256)), 1);              // a tie, down to even
  EXPECT_EQ(float(Bf16(1 + 3.0f / 256)), 1 + 1.0f / 64);  // a tie, up to even
  EXPECT_EQ(float(Bf16(-1 - 3.0f / 256)), -1 - 1.0f / 64);
  EXPECT_EQ(float(Bf16(3.14159265f)), 3.140625f);
  EXPECT_EQ(Bf16(0.0f).bits, 0);
  EXPECT_EQ(Bf16(-0.0f).bits, 0x8000);
}

TEST(Bf16, KeepsInfinityAndNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(float(Bf16(infinity)), infinity);
  EXPECT_EQ(float(Bf16(-infinity)), -infinity);
  EXPECT_EQ(float(Bf16(std::numeric_limits<float>::max())), infinity);
  EXPECT_EQ(float(Bf16(1e300)), infinity);
  EXPECT_EQ(float(Bf16(-1e300)), -infinity);
  // The payload of the first is in the half that is dropped; the second would carry into the sign.
  for (const uint32_t bits : {0x7F800001u, 0x7FFFFFFFu, 0xFF800001u, 0xFFFFFFFFu}) {
    EXPECT_TRUE(std::isnan(float(Bf16(float_of(bits))))) << bits;
    EXPECT_EQ(Bf16(float_of(bits)).bits >> 15, bits >> 31) << bits;
  }
  EXPECT_TRUE(std::isnan(double(Bf16(std::numeric_limits<double>::quiet_NaN()))));
}

TEST(Bf16, KeepsDenormalNumbersAndRoundsWhatIsTooSmall) {
  const float smallest = float_of(0x00010000u);  // 2^-133
  EXPECT_EQ(smallest, std::ldexp(1.0f, -133));
  EXPECT_EQ(float(Bf16(smallest)), smallest);
  EXPECT_EQ(float(Bf16(smallest / 2)), 0);  // a tie, to even
  EXPECT_EQ(float(Bf16(smallest * 0.75f)), smallest);
  EXPECT_EQ(float(Bf16(smallest * 1.5f)), 2 * smallest);
  EXPECT_EQ(Bf16(-std::numeric_limits<float>::denorm_min()).bits, 0x8000);
  EXPECT_EQ(float(Bf16(1e-300)), 0);
}

}  // namespace
}  // namespace fathom::kernels
