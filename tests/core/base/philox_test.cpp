#include "core/base/philox.h"

#include <set>

#include <gtest/gtest.h>

namespace fathom {
namespace {

// Known-answer vectors of Random123 (kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, GivesTheKnownAnswers) {
  constexpr uint32_t kOnes = 0xFFFFFFFFu;
  EXPECT_EQ(philox({0, 0}, {0, 0, 0, 0}),
            (PhiloxCounter{0x6627E8D5u, 0xE169C58Du, 0xBC57AC4Cu, 0x9B00DBD8u}));
  EXPECT_EQ(philox({kOnes, kOnes}, {kOnes, kOnes, kOnes, kOnes}),
            (PhiloxCounter{0x408F276Du, 0x41C83B0Eu, 0xA20BC7C6u, 0x6D5451FDu}));
  EXPECT_EQ(
      philox({0xA4093822u, 0x299F31D0u}, {0x243F6A88u, 0x85A308D3u, 0x13198A2Eu, 0x03707344u}),
      (PhiloxCounter{0xD16CFE09u, 0x94FDCCEBu, 0x5001E420u, 0x24126EA1u}));
}

TEST(PhiloxStream, IsUniformInTheOpenIntervalAndNormal) {
  const PhiloxStream stream(1, "test");
  constexpr int kCount = 100000;
  double uniform = 0, normal = 0, squares = 0, fourth = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    const double u = stream.uniform(i), z = stream.normal(i);
    ASSERT_GT(u, 0);
    ASSERT_LT(u, 1);
    uniform += u / kCount;
    normal += z / kCount;
    squares += z * z / kCount;
    fourth += z * z * z * z / kCount;
  }
  EXPECT_NEAR(uniform, 0.5, 5 * std::sqrt(1.0 / 12 / kCount));
  EXPECT_NEAR(normal, 0, 5 * std::sqrt(1.0 / kCount));
  EXPECT_NEAR(squares, 1, 5 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(fourth, 3, 5 * std::sqrt(96.0 / kCount));
}

TEST(PhiloxStream, DiffersBySeedPurposeAndIndex) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 10; ++seed)
    for (const char* purpose : {"a", "b", "ab", ""})
      for (uint64_t i : {0ull, 1ull, 1ull << 32}) seen.insert(PhiloxStream(seed, purpose).bits(i));
  EXPECT_EQ(seen.size(), 120u);
  EXPECT_EQ(PhiloxStream(3, "a").bits(9), PhiloxStream(3, "a").bits(9));
}

}  // namespace
}  // namespace fathom
