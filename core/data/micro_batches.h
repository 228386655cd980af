// How one rank divides its virtual shards of a batch into micro-batches, each one forward and one
// backward. A pure function of the batch and the lengths.
//
// Where shards may be fused, adjacent ones share a micro-batch as long as they cost at most
// `micro_tokens` together, and a shard that costs more alone is split into several. Otherwise every
// shard is one micro-batch, even an empty one.
#pragma once

#include <cstdint>
#include <vector>

#include "core/data/batch_plan.h"

namespace fathom::data {

// Rows of a packed batch that belong to one shard.
struct ShardRows {
  int64_t first_source = 0, source_rows = 0, first_target = 0, target_rows = 0;
  // Of a split shard: its rows in the micro-batches before this one.
  int64_t source_before = 0, target_before = 0;
};

struct MicroBatch {
  std::vector<int64_t> pairs = {};
  int first_shard = 0;                 // of the batch's
  std::vector<ShardRows> shards = {};  // from first_shard on, without gaps
  // A split shard has several micro-batches.
  bool is_first = true;  // of its shards
  bool is_last = true;
};

struct MicroBatchOptions {
  int64_t micro_tokens = 4096;
  bool fuses_shards = false;
};

// Of shards [begin, end), in the order of the batch, also within a micro-batch.
[[nodiscard]] std::vector<MicroBatch> micro_batches(const Batch& batch, const PairLengths& lengths,
                                                    int begin, int end,
                                                    const MicroBatchOptions& options);

// Source and target tokens of shards [begin, end), EOS included.
[[nodiscard]] int64_t tokens_of(const Batch& batch, const PairLengths& lengths, int begin, int end);

}  // namespace fathom::data
