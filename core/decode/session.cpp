#include "core/decode/session.h"

#include <limits>

#include "core/data/tokenizer.h"

namespace fathom::decode {

DecodingSession::DecodingSession(model::Transformer& model, Device& device,
                                 std::span<const Tokens> sources, SessionSize size)
    : model_(model),
      tape_(device, model.parameters().dtype(),
            {.recording = false,
             .batch_invariant = true,
             .training = false,
             .update = model.update()}),
      size_(size) {
  require(!sources.empty() && size.rows >= int64_t(sources.size()) && size.tokens >= 1,
          "decode: ", size.rows, " rows of ", size.tokens, " tokens for ", sources.size(),
          " sentences; each needs a row and a token");
  require(size.rows <= std::numeric_limits<int32_t>::max() / size.tokens, "decode: ", size.rows,
          " rows of ", size.tokens, " tokens are too many; decode fewer sentences at once");
  for (size_t i = 0; i < sources.size(); ++i) rows_.push_back({.sentence = i, .place = int32_t(i)});
  encode(sources);
  step_start_ = device.arena().mark();
}

// Of the encoder's pass only the decoder's keys and values of its output are kept.
void DecodingSession::encode(std::span<const Tokens> sources) {
  std::vector<int32_t> lengths, tokens, positions;
  for (const Tokens& source : sources) {
    lengths.push_back(int32_t(source.size()) + 1);
    tokens.insert(tokens.end(), source.begin(), source.end());
    tokens.push_back(data::kEndOfSentence);
    for (int32_t p = 0; p < lengths.back(); ++p) positions.push_back(p);
  }
  source_segments_ = data::Segments::from_lengths(lengths);
  const int64_t C = model_.config().width;
  for (int layer = 0; layer < model_.config().decoder_layers; ++layer)
    cache_.layers.push_back({.self = tape_.keep(size_.rows * size_.tokens, 2 * C),
                             .cross = tape_.keep(source_segments_.total, 2 * C)});

  const tensor::ArenaScope scope(tape_.device().arena());
  const Var memory =
      model_.encode(tape_, model::upload_rows(tape_, tokens, positions, source_segments_,
                                              model_.config().vocabulary_size));
  for (int layer = 0; layer < model_.config().decoder_layers; ++layer)
    tape_.context().copy(cache_.layers[size_t(layer)].cross,
                         model_.source_keys(layer + 1, memory).value());
}

Tensor DecodingSession::step(std::span<const int32_t> tokens) {
  require(tokens.size() == rows_.size() && !rows_.empty(), "decode: ", tokens.size(),
          " tokens for ", rows_.size(), " rows");
  require(position_ < size_.tokens, "decode: no room for a token after ", position_);
  tape_.device().arena().rewind(step_start_);
  // For each row: its token, its position, where its keys and values are written, and where those
  // it attends to are, its own and the source's.
  std::vector<int32_t> row_numbers, places, own_begin, source_begin, source_length;
  for (const Row& row : rows_) {
    const int32_t first = row.place * int32_t(size_.tokens);
    row_numbers.push_back(int32_t(row_numbers.size()));
    places.push_back(first + position_);
    own_begin.push_back(first);
    source_begin.push_back(source_segments_.begin[row.sentence]);
    source_length.push_back(source_segments_.length[row.sentence]);
  }
  const int64_t n = rows();
  const std::vector<int32_t> ones(rows_.size(), 1), positions(rows_.size(), position_),
      own_length(rows_.size(), position_ + 1);
  std::vector<int32_t> all;
  const std::span<const int32_t> parts[] = {tokens,     positions,    row_numbers,
                                            ones,       places,       own_begin,
                                            own_length, source_begin, source_length};
  for (const auto& values : parts) all.insert(all.end(), values.begin(), values.end());
  const Tensor numbers = tape_.upload(all);
  const auto part = [&](int64_t i) { return numbers.columns(i * n, n); };
  ++position_;
  cache_.write_row = part(4);
  cache_.self_keys = model::segments_of(part(5), part(6), cache_.layers[0].self.rows(), position_);
  cache_.memory_keys =
      model::segments_of(part(7), part(8), source_segments_.total, source_segments_.longest());
  const Var decoded =
      model_.decode(tape_, part(0), part(1), position_,
                    {.segments = model::segments_of(part(2), part(3), n, 1), .cache = &cache_});
  return model_.logits(decoded).value();
}

// The first row that continues another takes its place in the cache; further ones get copies, in
// places that no row continues from.
void DecodingSession::reorder(std::span<const int32_t> rows) {
  require(int64_t(rows.size()) <= size_.rows, "decode: ", rows.size(), " rows, there is room for ",
          size_.rows);
  std::vector<bool> is_taken(size_t(size_.rows), false);
  std::vector<Row> reordered;
  std::vector<size_t> further;
  std::vector<int32_t> from, to;
  for (const int32_t r : rows) {
    require(r >= 0 && r < this->rows(), "decode: row ", r, " of ", this->rows());
    Row row = rows_[size_t(r)];
    if (is_taken[size_t(row.place)]) {
      further.push_back(reordered.size());
      from.push_back(row.place);
    }
    is_taken[size_t(row.place)] = true;
    reordered.push_back(row);
  }
  int32_t place = 0;
  for (const size_t i : further) {
    while (is_taken[size_t(place)]) ++place;
    is_taken[size_t(place)] = true;
    reordered[i].place = place;
    to.push_back(place);
  }
  copy_places(from, to);
  rows_ = std::move(reordered);
}

void DecodingSession::copy_places(std::span<const int32_t> from, std::span<const int32_t> to) {
  const int64_t n = int64_t(from.size()) * position_;
  if (n == 0) return;
  std::vector<int32_t> all;
  for (const auto& places : {from, to})
    for (const int32_t place : places)
      for (int32_t p = 0; p < position_; ++p) all.push_back(place * int32_t(size_.tokens) + p);
  const Tensor numbers = tape_.upload(all);
  for (const model::LayerCache& layer : cache_.layers) {
    const Tensor rows = tape_.scratch(n, layer.self.cols());
    tape_.context().run(&kernels::Kernels::gather_rows,
                        {.from = layer.self, .to = rows, .index = numbers.columns(0, n)});
    tape_.context().run(&kernels::Kernels::append_rows,
                        {.from = rows, .to = layer.self, .index = numbers.columns(n, n)});
  }
}

}  // namespace fathom::decode
