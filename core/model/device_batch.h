// A packed batch in a device's memory: i32 tensors, and the host numbers that a launch needs. One
// upload per batch.
#pragma once

#include "core/autograd/tape.h"
#include "core/data/packed_batch.h"
#include "core/kernels/segments.h"

namespace fathom::model {

// The rows of one stack: sentences one after the other.
struct PackedRows {
  Tensor tokens, position;  // (1, T)
  Tensor sentence;          // (1, T); empty without dropout
  Tensor begin, length;     // (1, S)
  int64_t longest = 0;      // of the sentences, in rows

  // An id does not depend on the other rows of the batch.
  [[nodiscard]] kernels::RowIds ids() const;
  [[nodiscard]] kernels::Segments segments() const;
};

// The layout of sentences in a matrix of `total` rows, from tensors (1, S) of first rows and
// lengths.
[[nodiscard]] kernels::Segments segments_of(const Tensor& begin, const Tensor& length,
                                            int64_t total, int64_t longest);

struct DeviceBatch {
  PackedRows source;  // empty in a decoder-only batch
  PackedRows target;  // what the decoder reads
  Tensor targets;     // (1, T): what it must predict
};

// In memory of the tape, which must outlive the batch. InvalidArgument for a token outside the
// vocabulary.
[[nodiscard]] DeviceBatch upload(Tape& tape, const data::PackedBatch& batch,
                                 int64_t vocabulary_size);
// One side alone, for inference: no sentence ids.
[[nodiscard]] PackedRows upload_rows(Tape& tape, std::span<const int32_t> tokens,
                                     std::span<const int32_t> position,
                                     const data::Segments& segments, int64_t vocabulary_size);

}  // namespace fathom::model
