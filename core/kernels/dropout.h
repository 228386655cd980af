// Dropout without state. Whether an element is kept is a pure function of (seed, step, site;
// sentence, position, feature): no mask is stored, and neither the number of ranks nor what shares
// a batch can change it.
//
// One Philox block decides eight neighbouring features with 16 bits each, so the probability is
// rounded to a multiple of 1/65536 and survivors are scaled by exactly its complement.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/philox.h"

namespace fathom::kernels {

// Which sentence and position each row of an activation belongs to; in the device's memory.
struct RowIds {
  const int32_t* sentence = nullptr;
  const int32_t* position = nullptr;
};

struct Dropout {
  uint32_t threshold = 0;  // 16-bit draws below it are dropped; 0: no dropout
  uint32_t key[2] = {};
  RowIds rows = {};

  [[nodiscard]] bool is_active() const { return threshold != 0; }
  [[nodiscard]] double keep_scale() const { return 65536.0 / (65536.0 - threshold); }

  // Eight draws for features [8 block, 8 block + 8) of a row; `plane` separates attention heads.
  [[nodiscard]] PhiloxCounter draw(uint32_t block, uint32_t position, uint32_t sentence,
                                   uint32_t plane = 0) const {
    return philox({key[0], key[1]}, {block, position, sentence, plane});
  }
  [[nodiscard]] static uint32_t draw_of(const PhiloxCounter& draws, int feature_in_block) {
    return draws[size_t(feature_in_block / 2)] >> (16 * (feature_in_block % 2)) & 0xFFFFu;
  }
  // 0 or keep_scale(), for one element.
  [[nodiscard]] double factor(int64_t row, int64_t feature, uint32_t plane = 0) const {
    if (!is_active()) return 1;
    const PhiloxCounter d = draw(uint32_t(feature / 8), uint32_t(rows.position[row]),
                                 uint32_t(rows.sentence[row]), plane);
    return draw_of(d, int(feature % 8)) < threshold ? 0 : keep_scale();
  }
};

// The (seed, step) part of every mask of one training step.
struct DropoutStep {
  uint64_t seed = 0;
  int64_t step = 0;

  [[nodiscard]] Dropout at(uint64_t site, double probability, RowIds rows) const {
    const uint64_t k = mix64(mix64(seed) ^ mix64(uint64_t(step) * 0x9E3779B97F4A7C15u) ^ site);
    return {.threshold = uint32_t(std::lround(probability * 65536)),
            .key = {uint32_t(k), uint32_t(k >> 32)},
            .rows = rows};
  }
};

}  // namespace fathom::kernels
