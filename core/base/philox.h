// Counter-based random numbers: Philox-4x32-10 (Salmon et al. 2011, "Parallel random numbers: as
// easy as 1, 2, 3"). A number is a pure function of (key, counter), so there is no generator state:
// nothing is stored in a checkpoint and the number of ranks or threads cannot matter.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "core/base/hash.h"

namespace fathom {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

[[nodiscard]] inline PhiloxCounter philox(PhiloxKey key, PhiloxCounter counter) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
  constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * counter[2];
    counter = {uint32_t(product1 >> 32) ^ counter[1] ^ key[0], uint32_t(product1),
               uint32_t(product0 >> 32) ^ counter[3] ^ key[1], uint32_t(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// A stream of independent numbers for one purpose: `PhiloxStream(seed,
// "init/encoder.1.fc1.weight")`. uniform(i), normal(i) and bits(i) are pure functions of i.
class PhiloxStream {
 public:
  PhiloxStream(uint64_t seed, std::string_view purpose) {
    const uint64_t k = mix64(mix64(seed) ^ hash_name(purpose));
    key_ = {uint32_t(k), uint32_t(k >> 32)};
  }
  [[nodiscard]] uint64_t bits(uint64_t i) const {
    const PhiloxCounter r = philox(key_, {uint32_t(i), uint32_t(i >> 32), 0, 0});
    return uint64_t{r[0]} | uint64_t{r[1]} << 32;
  }
  // In the open interval (0, 1).
  [[nodiscard]] double uniform(uint64_t i) const {
    return (double(bits(i) >> 11) + 0.5) * 0x1.0p-53;
  }
  // Standard normal, by Box and Muller.
  [[nodiscard]] double normal(uint64_t i) const {
    const PhiloxCounter r = philox(key_, {uint32_t(i), uint32_t(i >> 32), 1, 0});
    const double u = (double((uint64_t{r[0]} | uint64_t{r[1]} << 32) >> 11) + 0.5) * 0x1.0p-53;
    const double v = (double((uint64_t{r[2]} | uint64_t{r[3]} << 32) >> 11) + 0.5) * 0x1.0p-53;
    return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586476925286766559 * v);
  }

 private:
  PhiloxKey key_;
};

}  // namespace fathom
