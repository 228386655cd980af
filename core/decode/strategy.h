// How target tokens are chosen, step by step: a search over a DecodingSession.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/decode/session.h"

namespace fathom::decode {

class Strategy {
 public:
  virtual ~Strategy() = default;
  // Hypotheses that a sentence has at once, at most: what the session must have room for.
  [[nodiscard]] virtual int64_t rows_per_sentence() const = 0;
  // The target of each sentence of a fresh session, without EOS, of at most limits[i] >= 1 tokens.
  [[nodiscard]] virtual std::vector<Tokens> search(DecodingSession& session,
                                                   std::span<const int32_t> limits) const = 0;
};

}  // namespace fathom::decode
