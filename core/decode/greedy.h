// Greedy decoding with key/value caches. What a sentence becomes does not depend on what it shares
// a batch with: rows go through tiles of one fixed size, and attention stays within a sentence.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/transformer.h"

namespace fathom::decode {

struct GreedyOptions {
  // At most a * (source tokens with EOS) + b target tokens, as fairseq's max_len_a, max_len_b.
  double max_length_a = 1.2;
  int64_t max_length_b = 10;
};

// `sources`: tokens without EOS. Returns the target tokens without EOS; an empty source gives an
// empty target. Throws InvalidArgument for a decoder-only model.
[[nodiscard]] std::vector<std::vector<int32_t>> greedy_decode(
    model::Transformer& model, Device& device, const std::vector<std::vector<int32_t>>& sources,
    const GreedyOptions& options = {});

}  // namespace fathom::decode
