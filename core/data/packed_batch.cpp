#include "core/data/packed_batch.h"

#include "core/base/error.h"
#include "core/data/tokenizer.h"

namespace fathom::data {
namespace {

void add_rows(std::vector<int32_t>& position, std::vector<int32_t>& sentence, int32_t rows,
              int64_t pair) {
  for (int32_t t = 0; t < rows; ++t) position.push_back(t);
  sentence.insert(sentence.end(), size_t(rows), int32_t(pair));
}

}  // namespace

PackedBatch pack(const Dataset& dataset, std::span<const int64_t> pairs,
                 std::span<const int64_t> sources) {
  require(sources.empty() || !dataset.decoder_only(),
          "pack: sources are exchanged, but this data set is decoder-only and has none");
  require(sources.empty() || sources.size() == pairs.size(), "pack: ", sources.size(),
          " sources for ", pairs.size(), " pairs");
  PackedBatch batch;
  batch.sentence_id.assign(pairs.begin(), pairs.end());
  std::vector<int32_t> source_lengths, target_lengths;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const int64_t pair = pairs[i];
    if (!dataset.decoder_only()) {
      const std::span<const int32_t> source = dataset.source(sources.empty() ? pair : sources[i]);
      batch.source.insert(batch.source.end(), source.begin(), source.end());
      batch.source.push_back(kEndOfSentence);
      source_lengths.push_back(int32_t(source.size()) + 1);
      add_rows(batch.source_position, batch.source_sentence, source_lengths.back(), pair);
    }
    const std::span<const int32_t> target = dataset.target(pair);
    batch.decoder_input.push_back(kEndOfSentence);
    batch.decoder_input.insert(batch.decoder_input.end(), target.begin(), target.end());
    batch.target.insert(batch.target.end(), target.begin(), target.end());
    batch.target.push_back(kEndOfSentence);
    target_lengths.push_back(int32_t(target.size()) + 1);
    add_rows(batch.target_position, batch.target_sentence, target_lengths.back(), pair);
  }
  batch.source_segments = Segments::from_lengths(source_lengths);
  batch.target_segments = Segments::from_lengths(target_lengths);
  return batch;
}

}  // namespace fathom::data
