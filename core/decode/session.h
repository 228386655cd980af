// The interface between a model and a search for target sentences. The sources are encoded once;
// then each step gives every live row its next token and returns the logits of the one after. A row
// is one hypothesis for one sentence. A search drops, repeats and permutes rows with reorder():
// rows of a sentence share the keys and values of its source, and each has its own of the target.
//
// A row's results do not depend on the other rows: products use tiles of one fixed size, and
// attention stays within a row.
//
// R rows at most, each of at most P tokens, L decoder layers, width C, S source tokens:
// memory   2 C L (R P + S) numbers, kept; in addition the encoder's pass, later one step's
// step     a forward pass of one token for each live row; attention reads the row's tokens so far
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

  // tokens (R): the last token of each live row, EOS at the start. -> logits (R, V), valid until
  // the next step, as is everything kept on the tape.
  [[nodiscard]] Tensor step(std::span<const int32_t> tokens);

  // Row i continues what row rows[i] was. Rows that are not named are dropped.
  void reorder(std::span<const int32_t> rows);

  [[nodiscard]] Tape& tape() { return tape_; }

 private:
  struct Row {
    size_t sentence;
    int32_t place;  // in the cache: it owns the P rows from place * P
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
