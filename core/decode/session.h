// What any search for target sentences needs of a model. The sources are encoded once; then each
// step gives every live row its next token and answers with the logits of the one after. A row is
// one hypothesis about one sentence. A search ends, repeats and permutes rows with reorder(): rows
// of a sentence share the keys and values of its source, and each has its own of the target.
//
// A row's numbers do not depend on the other rows: products go through tiles of one fixed size, and
// attention stays within a row.
//
// R rows at most, each of at most P tokens, L decoder layers, width C, S source tokens:
// memory   2 C L (R P + S) numbers, kept; besides the encoder's pass, then one step's
// step     a forward pass of one token for each live row; attention reads what the row has so far
// reorder  nothing on the device, but for each further use of a row a copy of its 2 C L numbers
//          for each token so far
// Nothing here waits for the device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/transformer.h"

namespace fathom::decode {

using Tokens = std::vector<int32_t>;

struct SessionSize {
  int64_t rows = 0;    // live at once, at most; at least one for each sentence
  int64_t tokens = 0;  // of a target, at most
};

class DecodingSession {
 public:
  // `sources`: tokens without EOS. At first row i is sentence i, and nothing is decoded.
  // InvalidArgument for a decoder-only model, for no sources, and for a size that does not fit.
  DecodingSession(model::Transformer& model, Device& device, std::span<const Tokens> sources,
                  SessionSize size);

  [[nodiscard]] int64_t rows() const { return int64_t(rows_.size()); }
  [[nodiscard]] size_t sentence(size_t row) const { return rows_[row].sentence; }

  // tokens (R): the last token of each live row, EOS at the start. -> logits (R, V), which live
  // until the next step, as does all that is kept on the tape.
  [[nodiscard]] Tensor step(std::span<const int32_t> tokens);

  // Row i goes on from what row rows[i] was. A row that is not named is gone.
  void reorder(std::span<const int32_t> rows);

  [[nodiscard]] Tape& tape() { return tape_; }

 private:
  struct Row {
    size_t sentence;
    int32_t place;  // in the cache: it owns the rows place * P and on
  };
  void encode(std::span<const Tokens> sources);
  void copy_places(std::span<const int32_t> from, std::span<const int32_t> to);

  model::Transformer& model_;
  Tape tape_;
  SessionSize size_;
  data::Segments source_segments_;
  model::DecoderCache cache_;
  std::vector<Row> rows_;
  int32_t position_ = 0;  // tokens that each live row has read
  Arena::Mark step_start_ = 0;
};

}  // namespace fathom::decode
