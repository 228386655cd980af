// Translates sentences, keeping their order: the loop behind `fathom translate`, `fathom evaluate`
// and validation. A translation does not depend on the other sentences, their order, or the batch
// size, which bounds the memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/decode/strategy.h"

namespace fathom::decode {

// A target has at most a * (source tokens with EOS) + b tokens, as fairseq's max_len_a, max_len_b.
struct LengthLimit {
  double a = 1.2;
  int64_t b = 10;

  [[nodiscard]] int32_t of(const Tokens& source) const;
};

struct TranslateOptions {
  int64_t batch_tokens = 2048;  // source tokens with EOS decoded at once; a longer source is alone
  LengthLimit limit = {};
};

// Which batches to decode: first, first + every, ... One rank's part of the work.
struct BatchShare {
  int64_t first = 0;
  int64_t every = 1;
  // Called before a batch of each share is decoded, as often in every share; what it throws ends
  // the work.
  std::function<void()> before_batch = {};
};

// Tokens without EOS, in and out. The target of an empty source is empty, and that of one outside
// this share. InvalidArgument for a decoder-only model.
[[nodiscard]] std::vector<Tokens> translate(model::Transformer& model, Device& device,
                                            const Strategy& strategy,
                                            std::span<const Tokens> sources,
                                            const TranslateOptions& options,
                                            const BatchShare& share = {});

}  // namespace fathom::decode
