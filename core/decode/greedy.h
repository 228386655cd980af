// The most probable token at each step.
#pragma once

#include "core/decode/strategy.h"

namespace fathom::decode {

class Greedy final : public Strategy {
 public:
  [[nodiscard]] int64_t rows_per_sentence() const override { return 1; }
  // Waits for the device once a step.
  [[nodiscard]] std::vector<Tokens> search(DecodingSession& session,
                                           std::span<const int32_t> limits) const override;
};

}  // namespace fathom::decode
