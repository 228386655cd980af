// Which pairs make up each batch of an epoch, and how a batch is divided into virtual shards: a
// pure function of (seed, epoch, lengths, the `batch` keys). It does not depend on ranks, so any
// number of them trains on the same batches, and a resumed run seeks to (epoch, batch) directly.
//
// The epoch is one random permutation, divided greedily into batches of at most batch.tokens.
// Nothing is sorted by length, since nothing is padded. The last, short batch is kept.
#pragma once

#include <cstdint>
#include <vector>

#include "core/data/config.h"
#include "core/data/dataset.h"

namespace fathom::data {

struct Batch {
  std::vector<int64_t> pairs;                // in the epoch's order
  std::vector<std::vector<int64_t>> shards;  // the same pairs, in that order in each; may be empty
  int64_t source_tokens = 0;                 // EOS counted
  int64_t target_tokens = 0;                 // EOS counted; what the loss is divided by
  int64_t cost = 0;                          // sum of max(source, target): at most batch.tokens
};

// batch.shards, or its default: max(8, the power of two >= tokens / micro_tokens).
[[nodiscard]] int64_t resolved_shards(const BatchConfig& config);

// The fewest shards with which no shard of any EpochPlan is over micro_tokens, as it must be under
// `dist.reduction: tree`, where a shard is one forward and backward.
[[nodiscard]] int64_t fewest_shards(const BatchConfig& config);

class EpochPlan {
 public:
  // `lengths` must outlive the plan. InvalidArgument naming data.max_length and the key that is too
  // small when a single pair costs more than batch.tokens or batch.micro_tokens, and when a key is
  // below 1 or there is no pair.
  EpochPlan(const PairLengths& lengths, const BatchConfig& config, uint64_t seed, int64_t epoch);

  [[nodiscard]] int64_t batch_count() const { return int64_t(begin_.size()) - 1; }
  // Computed on demand. InvalidArgument for b outside 0 .. batch_count() - 1.
  [[nodiscard]] Batch batch(int64_t b) const;
  // The whole epoch's order.
  [[nodiscard]] const std::vector<int64_t>& order() const { return order_; }

 private:
  void divide(const BatchConfig& config);

  const PairLengths* lengths_;
  int64_t shards_;
  std::vector<int64_t> order_;  // pair indices
  std::vector<int64_t> begin_;  // of each batch in order_, and one past the end
};

// Micro-batches of at most `micro_tokens` for validation: all pairs once, shortest first (ties by
// index), whatever the number of ranks. A pair over the limit is a batch of its own: no text may
// make a run that has trained fail when it is validated.
[[nodiscard]] std::vector<std::vector<int64_t>> evaluation_plan(const PairLengths& lengths,
                                                                int64_t micro_tokens);

}  // namespace fathom::data
