// The model's input: the tokens of some pairs, one sentence after the other, without padding.
// Source sentences end in EOS. The decoder's input is EOS and the target; what it must predict is
// the target and EOS. A decoder-only batch has no source rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/segments.h"

namespace fathom::data {

struct PackedBatch {
  std::vector<int32_t> source;           // (Ts)  tokens
  std::vector<int32_t> source_position;  // (Ts)  0, 1, ... in each sentence
  std::vector<int32_t> source_sentence;  // (Ts)  index in the data set of the row's pair
  std::vector<int32_t> decoder_input;    // (Tt)
  std::vector<int32_t> target;           // (Tt)
  std::vector<int32_t> target_position;  // (Tt)
  std::vector<int32_t> target_sentence;  // (Tt)
  Segments source_segments;              // S segments, or none
  Segments target_segments;              // S segments
  std::vector<int64_t> sentence_id;      // (S)  index in the data set of each segment's pair

  [[nodiscard]] int64_t sentences() const { return int64_t(sentence_id.size()); }
};

// Packs `pairs` in the order given. `sources`, when not empty, names for each of them the pair
// whose source is read instead: the source gain compares the loss under exchanged sources with the
// loss under the right ones. InvalidArgument for an index that is not in the data set, and when
// `sources` has another length than `pairs` or the data set has no sources.
[[nodiscard]] PackedBatch pack(const Dataset& dataset, std::span<const int64_t> pairs,
                               std::span<const int64_t> sources = {});

}  // namespace fathom::data
